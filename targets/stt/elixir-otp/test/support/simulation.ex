defmodule Gateway.Simulation do
  @moduledoc """
  Drives a session with a simulated clock. The time goes from one due moment to the next; whoever steps in between
  (a frame, an answer) does so at the time it is.
  """

  alias Gateway.{Failure, Session}

  @ms 1_000_000

  defstruct now: 0, session: nil, jobs?: true, flushes: [], in_flight?: false, messages: [], tally: []

  @settings %{
    flush_interval_ns: 1000 * @ms,
    start_timeout_ns: 10_000 * @ms,
    inference_timeout_ns: 5000 * @ms,
    buffer_frames_max: 100,
    overflow_policy: :drop_oldest,
    outbox_messages_max: 4,
    cpu_passes: 4
  }

  @spec settings(map) :: map
  def settings(changes \\ %{}), do: Map.merge(@settings, changes)

  @doc "A session that was opened and started at time 0."
  @spec started(map, non_neg_integer) :: %__MODULE__{}
  def started(changes \\ %{}, jitter_ms \\ 0) do
    {:ok, session} =
      changes |> settings() |> Session.new(jitter_ms * @ms, 0) |> Session.on_text(0, ~s({"type":"start"}))

    %__MODULE__{session: session}
  end

  @spec frames(%__MODULE__{}, non_neg_integer) :: %__MODULE__{}
  def frames(simulation, 0), do: simulation

  def frames(simulation, count) do
    {:ok, session} = Session.on_binary(simulation.session, simulation.now, <<count::5120>>)
    frames(%{simulation | session: session}, count - 1)
  end

  @doc "Lets time pass. Each wake comes `late_ms` late."
  @spec pass(%__MODULE__{}, non_neg_integer, non_neg_integer) :: %__MODULE__{}
  def pass(simulation, time_ms, late_ms \\ 0), do: pass_until(simulation, simulation.now + time_ms * @ms, late_ms * @ms)

  defp pass_until(simulation, until, late_ns) do
    at = max(Session.wake_at(simulation.session) + late_ns, simulation.now)

    if at <= until do
      simulation |> Map.put(:now, at) |> wake() |> pass_until(until, late_ns)
    else
      %{simulation | now: until}
    end
  end

  defp wake(simulation) do
    case Session.on_wake(simulation.session, simulation.now, fn -> simulation.jobs? end) do
      {:ok, session} ->
        counted(simulation, session)

      {:timeout, session} ->
        counted(%{simulation | in_flight?: false}, session)

      {:flush, pcm, session} ->
        if simulation.in_flight?, do: raise("a second request in flight")
        flush = {div(simulation.now, @ms), div(byte_size(pcm), 640)}
        counted(%{simulation | in_flight?: true, flushes: [flush | simulation.flushes]}, session)
    end
  end

  defp counted(simulation, session) do
    {tally, session} = Session.take_tally(session)
    %{simulation | session: session, tally: tally ++ simulation.tally}
  end

  @doc "The inference server answers: well, or with a kind of failure."
  @spec answer(%__MODULE__{}, :ok | Failure.kind()) :: %__MODULE__{}
  def answer(simulation, how) do
    answer =
      if how == :ok,
        do: {:ok, %{rms: 1.0, zero_crossings: 0, checksum: 0, samples: 0, transcript: "the", audio_bytes: 0}},
        else: {:error, %Failure{kind: how, message: "a failure"}}

    session = Session.on_answer(simulation.session, simulation.now, answer)
    counted(%{simulation | in_flight?: false}, session)
  end

  @doc "The client takes up to so many messages."
  @spec read(%__MODULE__{}, non_neg_integer | :all) :: %__MODULE__{}
  def read(simulation, 0), do: simulation

  def read(simulation, count) do
    case Session.take_message(simulation.session) do
      :empty ->
        simulation

      {message, session} ->
        simulation = %{simulation | session: session, messages: [Gateway.Vectors.decode(message) | simulation.messages]}
        read(simulation, if(count == :all, do: :all, else: count - 1))
    end
  end

  @doc "What the client was told, oldest first: `{kind, first frame, last frame}`."
  @spec told(%__MODULE__{}) :: [{String.t(), pos_integer, pos_integer}]
  def told(simulation) do
    for message <- Enum.reverse(read(simulation, :all).messages) do
      {message["kind"] || message["type"], message["oldest_frame_seq"], message["newest_frame_seq"]}
    end
  end
end
