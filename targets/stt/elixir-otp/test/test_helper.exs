{:ok, _started} = Application.ensure_all_started(:cowboy)
{:ok, _started} = Application.ensure_all_started(:gun)
# The crash test crashes a session on purpose.
:logger.set_primary_config(:level, :none)
ExUnit.start()
