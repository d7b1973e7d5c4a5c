"""What people look at: the report as text, as one page, and the picture of a plan, made without any other program."""
