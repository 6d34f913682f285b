"""`python -m daskscope_lambdas.admin_command`, for who has no script of it."""

from daskscope_lambdas.admin_command import admin

admin(prog_name="daskscope admin")
