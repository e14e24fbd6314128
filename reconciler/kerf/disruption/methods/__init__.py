"""The methods of voluntary disruption, each from candidates to commands."""
