defmodule Gateway.Sessions do
  @moduledoc """
  The supervisor of all sessions. It decides admission: it starts no more children than `MAX_SESSIONS`.
  """

  alias Gateway.{Config, Metrics, SessionServer}

  @draining {__MODULE__, :draining}
  @poll_ms 20
  # After the drain's time: for close frames to be sent.
  @linger_ms 200

  @spec child_spec(Config.t()) :: Supervisor.child_spec()
  def child_spec(config) do
    :persistent_term.put(@draining, false)
    max_children = if config.max_sessions > 0, do: config.max_sessions, else: :infinity

    DynamicSupervisor.child_spec(
      name: __MODULE__,
      strategy: :one_for_one,
      max_children: max_children
    )
  end

  @doc "Starts a session for a connection that is about to be upgraded."
  @spec admit(Config.t(), pid) :: {:ok, pid} | :full | :draining
  def admit(config, connection) do
    if draining?(), do: :draining, else: start_session(config, connection)
  end

  defp start_session(config, connection) do
    case DynamicSupervisor.start_child(__MODULE__, {SessionServer, {config, connection}}) do
      {:ok, session} ->
        Metrics.add(:sessions_total)
        {:ok, session}

      {:error, :max_children} ->
        Metrics.add(:sessions_rejected_total)
        :full
    end
  end

  @spec draining? :: boolean
  def draining?, do: :persistent_term.get(@draining)

  @spec count :: non_neg_integer
  def count, do: DynamicSupervisor.count_children(__MODULE__).active

  @doc "Takes no more sessions, lets those in flight be answered, and returns when all have ended or the time is over."
  @spec drain(non_neg_integer) :: :ok
  def drain(timeout_ms) do
    :persistent_term.put(@draining, true)
    await_end(&SessionServer.drain/1, now_ms() + timeout_ms)
    await_end(&SessionServer.close/1, now_ms() + @linger_ms)
  end

  # Asks again each time, because a session may have been admitted while draining began.
  defp await_end(ask, deadline_ms) do
    children = DynamicSupervisor.which_children(__MODULE__)
    for {_id, session, _type, _modules} <- children, is_pid(session), do: ask.(session)

    if children != [] and now_ms() < deadline_ms do
      Process.sleep(@poll_ms)
      await_end(ask, deadline_ms)
    else
      :ok
    end
  end

  defp now_ms, do: System.monotonic_time(:millisecond)
end
