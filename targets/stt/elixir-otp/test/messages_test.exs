defmodule Gateway.MessagesTest do
  use ExUnit.Case, async: true

  alias Gateway.{Failure, Messages, Reference, Vectors}

  for %{"id" => id} = vector <- Vectors.cases("start.json") do
    test "start: #{id}" do
      vector = unquote(Macro.escape(vector))
      assert Messages.start?(vector["text"]) == vector["ok"]
    end
  end

  for %{"id" => id} = vector <- Vectors.cases("inference_answers.json") do
    test "answer: #{id}" do
      vector = unquote(Macro.escape(vector))
      assert match?({:ok, _inference}, Messages.parse_inference(vector["body"])) == vector["ok"]
    end
  end

  test "an answer that is neither an error nor 200 is not the agreed JSON" do
    for status <- [204, 302], do: assert(Failure.from_status(status).kind == :parse_error)
  end

  for %{"id" => id} = vector <- Vectors.cases("inference_failures.json") do
    test "failure: #{id}" do
      vector = unquote(Macro.escape(vector))

      failure =
        case vector do
          %{"status" => status} when is_integer(status) -> Failure.from_status(status)
          %{"transport" => "reset"} -> Failure.connection_reset({:stream_error, :cancel, 'reset'})
          %{"transport" => "timeout"} -> Failure.timeout(5_000_000_000)
        end

      assert Atom.to_string(failure.kind) == vector["kind"]
      assert Failure.stage(failure.kind) == vector["stage"]
      assert Failure.retryable?(failure.kind) == vector["retryable"]
      assert failure.status == vector["status"]
    end
  end

  for %{"id" => id} = vector <- Vectors.cases("partials.json") do
    test "partial: #{id}" do
      %{"inference" => inference, "batch" => batch, "config" => config, "expect" => expect} =
        unquote(Macro.escape(vector))

      {:ok, inference} = inference |> :jiffy.encode() |> IO.iodata_to_binary() |> Messages.parse_inference()
      settings = %{cpu_passes: config["cpu_passes"]}
      partial = Messages.partial(span(batch, 0), inference, settings, ns(batch["flush_lateness_ms"]))
      assert Vectors.decode(partial) == expect
    end
  end

  for %{"id" => id} = vector <- Vectors.cases("errors.json") do
    test "error: #{id}" do
      %{"input" => %{"batch" => batch} = input, "expect" => expect} = unquote(Macro.escape(vector))
      now = 3_600_000_000_000

      failure = %Failure{
        kind: String.to_existing_atom(input["kind"]),
        message: input["message"],
        status: input["inference_status"]
      }

      error =
        Messages.error(failure, %{
          span: span(batch, now),
          now: now,
          lateness_ns: ns(batch["flush_lateness_ms"]),
          elapsed_ns: input["inference_elapsed_ms"] && ns(input["inference_elapsed_ms"]),
          inflight: input["inflight_gateway_batches"],
          buffer_frames: input["gateway_buffer_frames"]
        })

      assert Vectors.decode(error) == expect
    end
  end

  for %{"id" => id} = vector <- Vectors.cases("synthetic.json") do
    test "synthetic audio: #{id}" do
      vector = unquote(Macro.escape(vector))
      frame = Reference.frame(vector["session"], vector["seq"])
      assert Base.encode16(:crypto.hash(:sha256, frame), case: :lower) == vector["pcm_sha256"]
    end
  end

  for %{"id" => id} = vector <- Vectors.cases("reference.json") do
    test "reference: #{id}" do
      vector = unquote(Macro.escape(vector))

      pcm =
        case vector do
          %{"pcm" => hex} ->
            Base.decode16!(hex, case: :lower)

          %{"pcm_from" => %{"session" => session, "first_seq" => first, "frames" => frames}} ->
            for seq <- Enum.take(first..(first + frames), frames), into: <<>>, do: Reference.frame(session, seq)
        end

      answer = Reference.answer(pcm, vector["passes"])
      expect = vector["expect"]
      assert_in_delta answer["rms"], expect["rms"], expect["rms"] * 1.0e-9
      assert Map.delete(answer, "rms") == Map.delete(expect, "rms")
    end
  end

  defp span(batch, now) do
    %{
      oldest_seq: batch["oldest_frame_seq"],
      newest_seq: batch["newest_frame_seq"],
      oldest_at: now - ns(batch["oldest_age_ms"] || 0),
      newest_at: now - ns(batch["newest_age_ms"] || 0)
    }
  end

  defp ns(ms), do: round(ms * 1_000_000)
end
