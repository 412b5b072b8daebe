defmodule Gateway.Application do
  @moduledoc """
  Starts the gateway's supervision tree, and drains it.

  SIGTERM needs no handler: OTP stops the applications, and `prep_stop/1` comes before the tree goes down.
  """

  use Application

  alias Gateway.{Config, Http, Inference, Jobs, Metrics, Sessions}

  @impl true
  def start(_type, _args) do
    case Config.load() do
      {:ok, config} ->
        IO.puts(start_line())
        start_link(config)

      {:error, line} ->
        IO.puts(:stderr, line)
        System.halt(2)
    end
  end

  @doc "The supervision tree. The listener is last: it is there when the rest is."
  @spec start_link(Config.t()) :: Supervisor.on_start()
  def start_link(config) do
    Metrics.reset()
    Jobs.reset(config.max_inflight_jobs)
    children = [{Inference, config}, {Sessions, config}, {Http, config}]

    with {:ok, supervisor} <- Supervisor.start_link(children, strategy: :rest_for_one) do
      {:ok, supervisor, config}
    end
  end

  @impl true
  def prep_stop(config) do
    Sessions.drain(config.drain_timeout_ms)
    config
  end

  defp start_line do
    libraries = Map.new([:elixir, :cowboy, :cowlib, :ranch, :gun], &{&1, version(&1)})
    otp = System.otp_release()
    erts = List.to_string(:erlang.system_info(:version))
    JSON.encode!(%{runtime: "Erlang/OTP #{otp}, erts #{erts}", libraries: libraries})
  end

  defp version(application), do: List.to_string(Application.spec(application, :vsn))
end
