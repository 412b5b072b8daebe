defmodule Gateway.Application do
  @moduledoc """
  Starts the gateway and its processes.
  """

  use Application

  alias Gateway.{Admission, Config, Http, Inference, Metrics, Signals, Versions}

  @impl true
  def start(_type, _arguments) do
    config = Config.load!()
    IO.puts(Versions.line())
    # Modules are loaded when first used. Better now than while the first clients wait.
    for application <- [:stt_gateway, :cowboy, :cowlib, :ranch, :gun, :jiffy], do: load_modules(application)

    Signals.handle_sigterm(config)
    start_link(config)
  end

  @doc "The gateway's processes, without an application around them."
  @spec start_link(Config.t()) :: Supervisor.on_start()
  def start_link(config) do
    Metrics.reset()
    # The listener comes last, so it is there when the rest is, and goes first. Sessions live below it.
    children = [{Admission, config}, {Inference, config}, Http.child_spec(config)]
    Supervisor.start_link(children, strategy: :rest_for_one)
  end

  defp load_modules(application) do
    {:ok, modules} = :application.get_key(application, :modules)
    :ok = :code.ensure_modules_loaded(modules)
  end
end
