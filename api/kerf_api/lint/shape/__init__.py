"""The structural schema: types, fields, formats."""
