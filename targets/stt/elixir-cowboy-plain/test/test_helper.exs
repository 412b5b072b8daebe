{:ok, _started} = Application.ensure_all_started([:cowboy, :gun])
ExUnit.start()
