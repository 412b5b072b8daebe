defmodule Gateway.Admission do
  @moduledoc """
  How many sessions and how many requests there may be at once.

  A session is admitted before its upgrade and counted until its process ends, however it ends: this process monitors it.
  Jobs are counted without a message, in an atomic; what a killed session still held is given back here, too.
  """

  use GenServer

  alias Gateway.Metrics

  @jobs {__MODULE__, :jobs}

  defmodule Permit do
    @moduledoc "A session's right to be, and its place for one job."
    @enforce_keys [:number, :holds_job, :jobs, :jobs_max]
    defstruct [:number, :holds_job, :jobs, :jobs_max]
    @type t :: %__MODULE__{}
  end

  @spec start_link(Gateway.Config.t()) :: GenServer.on_start()
  def start_link(config), do: GenServer.start_link(__MODULE__, config, name: __MODULE__)

  @doc "Asks for a session that `pid` will be the process of."
  @spec admit(pid) :: {:ok, Permit.t()} | :full | :draining
  def admit(pid), do: GenServer.call(__MODULE__, {:admit, pid}, :infinity)

  @doc "Takes one of the gateway's jobs, unless all are taken."
  @spec take_job(Permit.t()) :: boolean
  def take_job(%Permit{jobs: jobs, jobs_max: jobs_max} = permit) do
    if :atomics.add_get(jobs, 1, 1) > jobs_max and jobs_max > 0 do
      :atomics.sub(jobs, 1, 1)
      false
    else
      :atomics.put(permit.holds_job, 1, 1)
      true
    end
  end

  @doc "Gives the session's job back, if it holds one."
  @spec release_job(Permit.t()) :: :ok
  def release_job(%Permit{} = permit) do
    if :atomics.exchange(permit.holds_job, 1, 0) == 1, do: :atomics.sub(permit.jobs, 1, 1)
    :ok
  end

  @doc "Requests in flight."
  @spec jobs :: non_neg_integer
  def jobs, do: :atomics.get(:persistent_term.get(@jobs), 1)

  @doc "Whether sessions are still taken."
  @spec ready? :: boolean
  def ready?, do: :atomics.get(:persistent_term.get(@jobs), 2) == 0

  @doc "Sessions open."
  @spec sessions :: non_neg_integer
  def sessions, do: :atomics.get(:persistent_term.get(@jobs), 3)

  @doc "Takes no more sessions, asks those there are to end by `timeout_ms`, and returns when all have, or some time later."
  @spec drain(non_neg_integer, non_neg_integer) :: :ok
  def drain(timeout_ms, margin_ms) do
    GenServer.call(__MODULE__, {:drain, timeout_ms}, timeout_ms + margin_ms)
  catch
    :exit, _timeout -> :ok
  end

  @impl true
  def init(config) do
    # 1: jobs, 2: draining, 3: sessions.
    jobs = :atomics.new(3, signed: true)
    :persistent_term.put(@jobs, jobs)
    {:ok, %{config: config, jobs: jobs, sessions: %{}, next_number: 0, drainer: nil}}
  end

  @impl true
  def handle_call({:admit, _pid}, _from, %{drainer: drainer} = state) when drainer != nil do
    {:reply, :draining, state}
  end

  def handle_call({:admit, pid}, _from, %{config: %{sessions_max: sessions_max}} = state) do
    if sessions_max > 0 and map_size(state.sessions) >= sessions_max do
      {:reply, :full, state}
    else
      permit = %Permit{
        number: state.next_number,
        holds_job: :atomics.new(1, signed: false),
        jobs: state.jobs,
        jobs_max: state.config.jobs_max
      }

      sessions = Map.put(state.sessions, Process.monitor(pid), {pid, permit})
      Metrics.session_opened()
      {:reply, {:ok, permit}, counted(%{state | sessions: sessions, next_number: state.next_number + 1})}
    end
  end

  def handle_call({:drain, _timeout_ms}, _from, %{drainer: drainer} = state) when drainer != nil do
    # Another SIGTERM. It is not answered, so that the first one's drain ends the VM.
    {:noreply, state}
  end

  def handle_call({:drain, timeout_ms}, from, state) do
    :atomics.put(state.jobs, 2, 1)
    until = System.monotonic_time(:nanosecond) + timeout_ms * 1_000_000
    for {_monitor, {pid, _permit}} <- state.sessions, do: send(pid, {:drain, until})
    {:noreply, answer_if_drained(%{state | drainer: from})}
  end

  @impl true
  def handle_info({:DOWN, monitor, :process, _pid, _reason}, state) do
    {{_pid, permit}, sessions} = Map.pop!(state.sessions, monitor)
    release_job(permit)
    {:noreply, %{state | sessions: sessions} |> counted() |> answer_if_drained()}
  end

  defp counted(state) do
    :atomics.put(state.jobs, 3, map_size(state.sessions))
    state
  end

  defp answer_if_drained(%{drainer: drainer, sessions: sessions} = state) when drainer != nil and sessions == %{} do
    GenServer.reply(drainer, :ok)
    state
  end

  defp answer_if_drained(state), do: state
end
