"""Tests of users' scenarios."""
