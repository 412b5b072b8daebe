defmodule Gateway.VectorsTest do
  use ExUnit.Case, async: true

  alias Gateway.{Failure, Messages, Socket, Vectors}

  for %{"id" => id} = vector <- Vectors.cases("start.json") do
    @tag vector: vector
    test "start: #{id}", %{vector: vector} do
      handled = Socket.websocket_handle({:text, vector["text"]}, {:awaiting_start, self()})

      if vector["ok"] do
        assert handled == {[], {:streaming, self()}}
      else
        assert {[{:close, code, _reason}], _state} = handled
        assert code == vector["close"]
      end
    end
  end

  # A greater length is refused by cowboy (`max_frame_size`).
  for %{"id" => id, "length" => length} = vector when length <= 65_536 <-
        Vectors.cases("frames.json") do
    @tag vector: vector
    test "frame: #{id}", %{vector: vector} do
      type = %{"binary" => :binary, "text" => :text}[vector["opcode"]]
      data = :binary.copy(<<0>>, vector["length"])
      handled = Socket.websocket_handle({type, data}, {:streaming, self()})

      if vector["ok"] do
        assert handled == {[], {:streaming, self()}}
        assert_receive {:"$gen_cast", {:frame, _now, ^data}}
      else
        assert {[{:close, code, _reason}], _state} = handled
        assert code == vector["close"]
      end
    end
  end

  for %{"id" => id} = vector <- Vectors.cases("inference_answers.json") do
    @tag vector: vector
    test "answer: #{id}", %{vector: vector} do
      assert match?({:ok, _answer}, Messages.parse_answer(vector["body"])) == vector["ok"]
    end
  end

  for %{"id" => id} = vector <- Vectors.cases("inference_failures.json") do
    @tag vector: vector
    test "failure: #{id}", %{vector: vector} do
      failure =
        case vector["transport"] do
          nil -> Failure.from_status(vector["status"])
          "reset" -> Failure.connection_reset({:stream_error, :cancel})
          "timeout" -> Failure.timeout(5000)
        end

      assert Atom.to_string(failure.kind) == vector["kind"]
      assert Failure.stage(failure.kind) == vector["stage"]
      assert Failure.retryable?(failure.kind) == vector["retryable"]
      assert failure.status == vector["status"]
    end
  end

  for %{"id" => id} = vector <- Vectors.cases("partials.json") do
    @tag vector: vector
    test "partial: #{id}", %{vector: vector} do
      %{"inference" => answer, "batch" => batch, "config" => config, "expect" => expect} = vector

      {:ok, answer} = answer |> JSON.encode!() |> Messages.parse_answer()
      lateness_us = us(batch["flush_lateness_ms"])
      partial = Messages.partial(span(batch, 0), answer, config["cpu_passes"], lateness_us)
      assert decode(partial) == expect
    end
  end

  for %{"id" => id} = vector <- Vectors.cases("errors.json") do
    @tag vector: vector
    test "error: #{id}", %{vector: vector} do
      %{"input" => %{"batch" => batch} = input, "expect" => expect} = vector

      now = 3_600_000_000

      failure = %Failure{
        kind: String.to_existing_atom(input["kind"]),
        message: input["message"],
        status: input["inference_status"]
      }

      error =
        Messages.error(failure, span(batch, now), %{
          now: now,
          lateness_us: us(batch["flush_lateness_ms"]),
          elapsed_us: input["inference_elapsed_ms"] && us(input["inference_elapsed_ms"]),
          inflight_batches: input["inflight_gateway_batches"],
          buffer_frames: input["gateway_buffer_frames"]
        })

      assert decode(error) == expect
    end
  end

  defp span(batch, now) do
    %{
      oldest_seq: batch["oldest_frame_seq"],
      newest_seq: batch["newest_frame_seq"],
      oldest_at: now - us(batch["oldest_age_ms"] || 0),
      newest_at: now - us(batch["newest_age_ms"] || 0)
    }
  end

  defp us(ms), do: round(ms * 1000)

  defp decode(text), do: text |> IO.iodata_to_binary() |> JSON.decode!()
end
