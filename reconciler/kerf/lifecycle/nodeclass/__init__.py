"""The status of EC2NodeClasses, and the AWS resources that Kerf keeps for them."""
