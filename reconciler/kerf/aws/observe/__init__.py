"""What the account has, one module for each kind of fact."""
