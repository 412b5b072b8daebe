defmodule Gateway.WebSocketTest do
  use ExUnit.Case, async: true

  alias Gateway.{Client, Session, Simulation, Vectors, WebSocket}

  # Frames of the vectors, by what the session says to what the parser finds.
  for %{"id" => id} = vector <- Vectors.cases("frames.json") do
    test "message: #{id}" do
      %{"opcode" => opcode, "length" => length, "ok" => ok, "close" => close} = unquote(Macro.escape(vector))
      opcode = if opcode == "text", do: 1, else: 2
      payload = if length > 65_536, do: <<>>, else: :binary.copy(" ", length)
      session = Simulation.started().session

      seen =
        case WebSocket.next(Client.frame(opcode, payload, declared: length), %WebSocket{}) do
          {{:binary, ^payload}, "", _ws} -> Session.on_binary(session, 0, payload)
          {{:text, ^payload}, "", _ws} -> Session.on_text(session, 0, payload)
          {:violation, reason} -> {:close, reason}
        end

      case seen do
        {:ok, _session} -> assert ok
        {:close, reason} -> assert Session.close_code(reason) == close
      end
    end
  end

  test "a message that must be refused is known by its header" do
    session = Simulation.started().session
    <<head::binary-8, _rest::binary>> = Client.frame(2, :binary.copy(" ", 700))
    {:more, {type, length}, _ws} = WebSocket.next(head, %WebSocket{})
    assert {type, length} == {:binary, 700}
    assert Session.refusal(session, type, length) == :frame_size
  end

  test "audio is unmasked alike in one piece, byte by byte and in fragments" do
    payload = :crypto.strong_rand_bytes(640)
    frame = Client.frame(2, payload)
    assert {{:binary, ^payload}, "rest", _ws} = WebSocket.next(frame <> "rest", %WebSocket{})

    assert {[{:binary, ^payload}], _ws} = feed(for(<<byte <- frame>>, do: <<byte>>))

    <<one::binary-200, two::binary>> = payload
    fragments = [Client.frame(2, one, fin: 0), Client.frame(9, "hm"), Client.frame(0, "", fin: 0), Client.frame(0, two)]
    assert {[{:ping, "hm"}, {:binary, ^payload}], ws} = feed(fragments)
    assert {{:binary, ^payload}, "", _ws} = WebSocket.next(frame, ws)
  end

  test "close codes" do
    assert {{:close, 1000}, "", _ws} = WebSocket.next(Client.frame(8, <<1000::16>>), %WebSocket{})
    assert {{:close, 4321}, "", _ws} = WebSocket.next(Client.frame(8, <<4321::16, "why">>), %WebSocket{})
    assert {{:close, nil}, "", _ws} = WebSocket.next(Client.frame(8, ""), %WebSocket{})
  end

  test "violations" do
    <<_head, rest::binary>> = Client.frame(2, "x")

    for bytes <- [
          # Unmasked; reserved bits and opcodes.
          <<0x82, 1, ?x>>,
          <<0xC2>> <> rest,
          <<0xA2>> <> rest,
          <<0x92>> <> rest,
          <<0x83>> <> rest,
          <<0x8B>> <> rest,
          # Control frames: fragmented, too long; a bad close.
          Client.frame(9, "half", fin: 0),
          Client.frame(9, :binary.copy("x", 126)),
          Client.frame(8, <<1005::16>>),
          Client.frame(8, <<1000::16, 0xC3, 0x28>>),
          Client.frame(8, "1"),
          # Fragments of nothing; a message within another.
          Client.frame(0, "x"),
          Client.frame(2, "x", fin: 0) <> Client.frame(2, "y"),
          Client.frame(1, <<0xC3, 0x28>>)
        ] do
      assert WebSocket.next(bytes, %WebSocket{}) == {:violation, :protocol}
    end
  end

  test "fragments without an end are not collected" do
    assert {[{:binary, _too_long}], _ws} = feed(for n <- [2, 0, 0], do: Client.frame(n, :binary.copy("x", 300), fin: 0))
    text = [Client.frame(1, :binary.copy("x", 40_000), fin: 0), Client.frame(0, :binary.copy("x", 40_000), fin: 0)]
    assert feed(text) == {:violation, :too_large}
  end

  # All events in pieces of a stream.
  defp feed(pieces, ws \\ %WebSocket{}, events \\ [])
  defp feed([], ws, events), do: {Enum.reverse(events), ws}

  defp feed([piece | pieces], ws, events) do
    case WebSocket.next(piece, ws) do
      {:more, _declared, ws} -> feed(pieces, ws, events)
      {:violation, reason} -> {:violation, reason}
      {event, rest, ws} -> feed([rest | pieces], ws, [event | events])
    end
  end
end
