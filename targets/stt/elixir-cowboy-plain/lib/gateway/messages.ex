defmodule Gateway.Messages do
  @moduledoc """
  The JSON on both sides, strict in what is read.
  """

  alias Gateway.Failure
  alias Gateway.Session.Buffer

  @frame_bytes 640
  @u32_max 0xFFFF_FFFF
  @u64_max 0xFFFF_FFFF_FFFF_FFFF

  # An object is read as a list of pairs, so that a repeated field is seen.
  @decoders [
    object_start: &__MODULE__.object_start/1,
    object_push: &__MODULE__.object_push/3,
    object_finish: &__MODULE__.object_finish/2
  ]

  @type answer :: %{
          rms: number,
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
  def start?(text), do: decode(text) == {:ok, {:object, [{"type", "start"}]}}

  @doc "Reads the inference server's answer: six fields, each once and of its type."
  @spec parse_answer(binary) :: {:ok, answer} | :error
  def parse_answer(body) do
    with {:ok, {:object, fields}} when length(fields) == 6 <- decode(body),
         %{
           "rms" => rms,
           "zero_crossings" => zero_crossings,
           "checksum" => checksum,
           "samples" => samples,
           "transcript" => transcript,
           "audio_bytes" => audio_bytes
         }
         when is_number(rms) and zero_crossings in 0..@u64_max and checksum in 0..@u32_max and
                samples in 0..@u64_max and is_binary(transcript) and audio_bytes in 0..@u64_max <-
           Map.new(fields) do
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
      _other -> :error
    end
  end

  @doc "The `partial` for an answer and the batch that it is about."
  @spec partial(Buffer.span(), answer, pos_integer, non_neg_integer) :: iodata
  def partial(span, answer, cpu_passes, lateness_us) do
    answer
    |> Map.merge(%{
      type: "partial",
      oldest_frame_seq: span.oldest_seq,
      newest_frame_seq: span.newest_seq,
      frames: frames(span),
      cpu_passes: cpu_passes,
      flush_lateness_ms: ms(lateness_us)
    })
    |> JSON.encode_to_iodata!()
  end

  @typedoc "What an `error` says about the moment it is made; `elapsed_us` is nil where there was no request."
  @type context :: %{
          now: integer,
          lateness_us: non_neg_integer,
          elapsed_us: non_neg_integer | nil,
          inflight_batches: non_neg_integer,
          buffer_frames: non_neg_integer
        }

  @doc "The `error` for a failed batch, or for frames that were dropped."
  @spec error(Failure.t(), Buffer.span(), context) :: iodata
  def error(failure, span, context) do
    JSON.encode_to_iodata!(%{
      type: "error",
      stage: Failure.stage(failure.kind),
      kind: failure.kind,
      message: failure.message,
      oldest_frame_seq: span.oldest_seq,
      newest_frame_seq: span.newest_seq,
      frames: frames(span),
      audio_bytes: frames(span) * @frame_bytes,
      oldest_age_ms: ms(context.now - span.oldest_at),
      newest_age_ms: ms(context.now - span.newest_at),
      flush_lateness_ms: ms(context.lateness_us),
      inference_elapsed_ms: context.elapsed_us && ms(context.elapsed_us),
      inflight_gateway_batches: context.inflight_batches,
      gateway_buffer_frames: context.buffer_frames,
      inference_status: failure.status,
      retryable: Failure.retryable?(failure.kind)
    })
  end

  defp frames(span), do: span.newest_seq - span.oldest_seq + 1

  defp ms(us), do: us / 1000

  defp decode(text) do
    case JSON.decode(text, nil, @decoders) do
      {value, nil, rest} -> if blank?(rest), do: {:ok, value}, else: :error
      {:error, _reason} -> :error
    end
  end

  defp blank?(<<char, rest::binary>>) when char in ~c" \t\r\n", do: blank?(rest)
  defp blank?(rest), do: rest == ""

  @doc false
  def object_start(_acc), do: []

  @doc false
  def object_push(name, value, fields), do: [{name, value} | fields]

  @doc false
  def object_finish(fields, acc), do: {{:object, fields}, acc}
end
