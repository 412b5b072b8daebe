defmodule Gateway.Client do
  @moduledoc "A WebSocket client for tests, on a bare socket, so that it can also do what it must not."

  import Bitwise

  @spec request(:inet.port_number(), String.t(), [String.t()]) :: {port, binary}
  def request(port, path, headers \\ []) do
    {:ok, socket} = :gen_tcp.connect('127.0.0.1', port, [:binary, active: false])
    :ok = :gen_tcp.send(socket, ["GET #{path} HTTP/1.1\r\nhost: test\r\n", Enum.map(headers, &[&1, "\r\n"]), "\r\n"])
    {:ok, answer} = :gen_tcp.recv(socket, 0, 2000)
    {socket, answer}
  end

  @spec upgrade(:inet.port_number(), [String.t()]) :: {port, binary}
  def upgrade(port, headers \\ []) do
    request(
      port,
      "/ws/stt",
      headers ++
        [
          "connection: Upgrade",
          "upgrade: websocket",
          "sec-websocket-version: 13",
          "sec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA=="
        ]
    )
  end

  @doc "A started session."
  @spec session(:inet.port_number()) :: port
  def session(port) do
    {socket, "HTTP/1.1 101" <> _headers} = upgrade(port)
    :ok = :gen_tcp.send(socket, frame(1, ~s({"type":"start"})))
    socket
  end

  @doc "A masked frame."
  @spec frame(0..15, binary, keyword) :: binary
  def frame(opcode, payload, options \\ []) do
    fin = Keyword.get(options, :fin, 1)
    size = Keyword.get(options, :declared, byte_size(payload))
    key = 0x37FA213D

    length =
      cond do
        size < 126 -> <<size::7>>
        size < 65_536 -> <<126::7, size::16>>
        true -> <<127::7, size::64>>
      end

    <<fin::1, 0::3, opcode::4, 1::1, length::bitstring, key::32, mask(payload, <<key::32>>)::binary>>
  end

  defp mask(payload, key) do
    for {byte, index} <- Enum.with_index(:binary.bin_to_list(payload)), into: <<>> do
      <<bxor(byte, :binary.at(key, rem(index, 4)))>>
    end
  end

  @doc "The next message of the server, whose lengths are below 64 KiB here."
  @spec receive_frame(port, timeout) :: {:text, map} | {:close, binary} | {:pong, binary} | {:error, term}
  def receive_frame(socket, timeout \\ 3000) do
    with {:ok, <<1::1, 0::3, opcode::4, 0::1, length::7>>} <- :gen_tcp.recv(socket, 2, timeout),
         {:ok, payload} <- receive_payload(socket, length) do
      case opcode do
        1 -> {:text, Gateway.Vectors.decode(payload)}
        8 -> {:close, payload}
        10 -> {:pong, payload}
      end
    end
  end

  defp receive_payload(_socket, 0), do: {:ok, <<>>}

  defp receive_payload(socket, 126) do
    {:ok, <<length::16>>} = :gen_tcp.recv(socket, 2, 1000)
    :gen_tcp.recv(socket, length, 1000)
  end

  defp receive_payload(socket, length), do: :gen_tcp.recv(socket, length, 1000)
end
