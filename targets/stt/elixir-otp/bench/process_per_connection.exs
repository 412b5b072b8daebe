# What a process per connection costs on the BEAM, apart from everything else that the gateway does.
#
# Audio frames come in on many sockets, each is unmasked by the gateway's own decoder and kept until there are fifty, then dropped. What differs is
# who owns the sockets: a process each, or one process for all of them; and whether they are read as data comes (`active`) or at a pace.
# bench/process-per-connection.sh starts this in each shape, in turns, and sends the frames.
#
#   SHAPE CONNECTIONS MEASURED_SECONDS, in the variables of those names; prints the port, then one line of JSON.

defmodule Sink do
  alias Gateway.WebSocket

  @batch_frames 50
  @active_n 50
  @pace_ms 200

  # The handshake is left out on purpose: what is asked is the cost of a frame.
  def decode(data, {ws, kept, count}, frames) do
    case WebSocket.next(data, ws) do
      {{:binary, payload}, rest, ws} ->
        :counters.add(frames, 1, 1)
        decode(rest, {ws, keep([payload | kept], count + 1), rem(count + 1, @batch_frames)}, frames)

      {:more, _declared, ws} ->
        {ws, kept, count}
    end
  end

  defp keep(kept, @batch_frames) do
    _batch = kept |> Enum.reverse() |> IO.iodata_to_binary()
    []
  end

  defp keep(kept, _count), do: kept

  def new, do: {%WebSocket{}, [], 0}

  ## A process for each socket

  def each(socket, :active, frames) do
    :ok = :inet.setopts(socket, active: @active_n)
    each_active(socket, new(), frames)
  end

  def each(socket, :paced, frames) do
    Process.send_after(self(), :read, @pace_ms)
    each_paced(socket, new(), frames)
  end

  defp each_active(socket, session, frames) do
    receive do
      {:tcp, ^socket, data} ->
        each_active(socket, decode(data, session, frames), frames)

      {:tcp_passive, ^socket} ->
        _ = :inet.setopts(socket, active: @active_n)
        each_active(socket, session, frames)

      {:tcp_closed, ^socket} ->
        :ok
    end
  end

  defp each_paced(socket, session, frames) do
    receive do
      :read ->
        Process.send_after(self(), :read, @pace_ms)
        each_paced(socket, read(socket, session, frames), frames)
    end
  end

  ## One process for all of them

  def one(:active, frames, sessions) do
    receive do
      {:own, socket} ->
        :ok = :inet.setopts(socket, active: @active_n)
        one(:active, frames, Map.put(sessions, socket, new()))

      {:tcp, socket, data} ->
        one(:active, frames, Map.update!(sessions, socket, &decode(data, &1, frames)))

      {:tcp_passive, socket} ->
        _ = :inet.setopts(socket, active: @active_n)
        one(:active, frames, sessions)

      {:tcp_closed, socket} ->
        one(:active, frames, Map.delete(sessions, socket))
    end
  end

  def one(:paced, frames, sessions) do
    receive do
      {:own, socket} ->
        Process.send_after(self(), {:read, socket}, @pace_ms)
        one(:paced, frames, Map.put(sessions, socket, new()))

      {:read, socket} ->
        Process.send_after(self(), {:read, socket}, @pace_ms)
        one(:paced, frames, Map.update!(sessions, socket, &read(socket, &1, frames)))
    end
  end

  defp read(socket, session, frames) do
    case :gen_tcp.recv(socket, 0, 0) do
      {:ok, data} -> decode(data, session, frames)
      {:error, _nothing_or_closed} -> session
    end
  end
end

[owner, reading] = System.fetch_env!("SHAPE") |> String.split("-") |> Enum.map(&String.to_atom/1)
connections = System.fetch_env!("CONNECTIONS") |> String.to_integer()
seconds = System.fetch_env!("MEASURED_SECONDS") |> String.to_integer()
frames = :counters.new(1, [:write_concurrency])

{:ok, listener} =
  :gen_tcp.listen(0, [:binary, active: false, ip: {127, 0, 0, 1}, backlog: 1024, buffer: 16_384, nodelay: true])

{:ok, port} = :inet.port(listener)
IO.puts(port)

one = if owner == :one, do: spawn(fn -> Sink.one(reading, frames, %{}) end)

for _ <- 1..connections do
  {:ok, socket} = :gen_tcp.accept(listener)

  if owner == :one do
    :ok = :gen_tcp.controlling_process(socket, one)
    send(one, {:own, socket})
  else
    each = spawn(fn -> receive do: (:go -> Sink.each(socket, reading, frames)) end)
    :ok = :gen_tcp.controlling_process(socket, each)
    send(each, :go)
  end
end

# Nobody is measured while it connects, loads code or fills its heaps.
Process.sleep(3000)
{cpu_begin_ms, _} = :erlang.statistics(:runtime)
{reductions_begin, _} = :erlang.statistics(:reductions)
frames_begin = :counters.get(frames, 1)
Process.sleep(1000 * seconds)
frames_read = :counters.get(frames, 1) - frames_begin
{cpu_end_ms, _} = :erlang.statistics(:runtime)
{reductions_end, _} = :erlang.statistics(:reductions)

IO.puts(
  ~s({"owner":"#{owner}","reading":"#{reading}","connections":#{connections},"seconds":#{seconds},"frames":#{frames_read},) <>
    ~s("cpu_us_per_frame":#{Float.round(1000 * (cpu_end_ms - cpu_begin_ms) / max(frames_read, 1), 3)},) <>
    ~s("reductions_per_frame":#{Float.round((reductions_end - reductions_begin) / max(frames_read, 1), 1)}})
)

System.halt(0)
