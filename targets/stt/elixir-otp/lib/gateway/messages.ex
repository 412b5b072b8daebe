defmodule Gateway.Messages do
  @moduledoc """
  The JSON on both sides, strict in what is read.

  A JSON object is read as a list of pairs, not a map, so that a repeated field is seen.
  """

  alias Gateway.Failure

  @frame_bytes 640
  @u32_max 0xFFFF_FFFF
  @u64_max 0xFFFF_FFFF_FFFF_FFFF

  @typedoc "Consecutive frames of a session with their times of arrival in nanoseconds."
  @type span :: %{oldest_seq: pos_integer, newest_seq: pos_integer, oldest_at: integer, newest_at: integer}

  @type inference :: %{
          rms: float,
          zero_crossings: non_neg_integer,
          checksum: non_neg_integer,
          samples: non_neg_integer,
          transcript: String.t(),
          audio_bytes: non_neg_integer
        }

  @doc "Bytes of one audio frame."
  defmacro frame_bytes, do: @frame_bytes

  @doc ~S|Whether a text is the start message: an object with the one field `type`, which is `"start"`.|
  @spec start?(binary) :: boolean
  def start?(text), do: decode(text) == {:ok, {[{"type", "start"}]}}

  @doc "Reads the inference server's answer; anything but the six fields, each once and of its type, is an error."
  @spec parse_inference(binary) :: {:ok, inference} | :error
  def parse_inference(body) do
    with {:ok, {fields}} <- decode(body),
         6 <- length(fields),
         %{
           "rms" => rms,
           "zero_crossings" => zero_crossings,
           "checksum" => checksum,
           "samples" => samples,
           "transcript" => transcript,
           "audio_bytes" => audio_bytes
         }
         when zero_crossings in 0..@u64_max and checksum in 0..@u32_max and samples in 0..@u64_max and
                audio_bytes in 0..@u64_max and is_binary(transcript) <- Map.new(fields),
         {:ok, rms} <- to_float(rms) do
      {:ok,
       %{
         rms: rms,
         zero_crossings: zero_crossings,
         checksum: checksum,
         samples: samples,
         transcript: transcript,
         audio_bytes: audio_bytes
       }}
    else
      _ -> :error
    end
  end

  @doc "The `partial` for an answer and the batch it covers."
  @spec partial(span, inference, map, integer) :: iodata
  def partial(span, inference, settings, lateness_ns) do
    encode([
      {"type", "partial"},
      {"oldest_frame_seq", span.oldest_seq},
      {"newest_frame_seq", span.newest_seq},
      {"frames", frames(span)},
      {"rms", inference.rms},
      {"zero_crossings", inference.zero_crossings},
      {"checksum", inference.checksum},
      {"samples", inference.samples},
      {"transcript", inference.transcript},
      {"audio_bytes", inference.audio_bytes},
      {"cpu_passes", settings.cpu_passes},
      {"flush_lateness_ms", ms(lateness_ns)}
    ])
  end

  @typedoc "What an `error` tells beside the failure; times in nanoseconds."
  @type context :: %{
          span: span,
          now: integer,
          lateness_ns: integer,
          elapsed_ns: integer | nil,
          inflight: 0 | 1,
          buffer_frames: non_neg_integer
        }

  @doc "The `error` for a failed batch, or for frames that were dropped."
  @spec error(Failure.t(), context) :: iodata
  def error(failure, %{span: span} = context) do
    encode([
      {"type", "error"},
      {"stage", Failure.stage(failure.kind)},
      {"kind", Atom.to_string(failure.kind)},
      {"message", failure.message},
      {"oldest_frame_seq", span.oldest_seq},
      {"newest_frame_seq", span.newest_seq},
      {"frames", frames(span)},
      {"audio_bytes", frames(span) * @frame_bytes},
      {"oldest_age_ms", ms(context.now - span.oldest_at)},
      {"newest_age_ms", ms(context.now - span.newest_at)},
      {"flush_lateness_ms", ms(context.lateness_ns)},
      {"inference_elapsed_ms", context.elapsed_ns && ms(context.elapsed_ns)},
      {"inflight_gateway_batches", context.inflight},
      {"gateway_buffer_frames", context.buffer_frames},
      {"inference_status", failure.status},
      {"retryable", Failure.retryable?(failure.kind)}
    ])
  end

  @doc "How many frames a span has."
  @spec frames(span) :: pos_integer
  def frames(span), do: span.newest_seq - span.oldest_seq + 1

  defp encode(fields), do: :jiffy.encode({fields}, [:use_nil])

  defp decode(text) do
    {:ok, :jiffy.decode(text)}
  rescue
    # jiffy raises {position, reason} as an Erlang error for whatever is not JSON.
    ErlangError -> :error
    ArgumentError -> :error
  end

  # JSON has one kind of number, so 0 is a good float; one that no float can hold is not.
  defp to_float(number) when is_float(number), do: {:ok, number}

  defp to_float(number) when is_integer(number) do
    {:ok, number / 1}
  rescue
    ArithmeticError -> :error
  end

  defp to_float(_other), do: :error

  defp ms(ns), do: ns / 1_000_000
end
