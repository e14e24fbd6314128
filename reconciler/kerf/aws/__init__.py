"""boto3 behind the Cloud port: EC2 and its neighbours, one module per service, errors told apart by what to do next."""
