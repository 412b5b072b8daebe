defmodule Gateway.Reference do
  @moduledoc "Synthetic audio and the inference server's answer to it, after section 5 of the contract."

  import Bitwise

  @words ~w(the quick brown fox jumps over lazy dog hello world yes no okay right left stop go wait ready done again now
            later never)

  @spec frame(non_neg_integer, pos_integer) :: binary
  def frame(session, seq) do
    for i <- 0..319, into: <<>>, do: <<rem((seq * 320 + session + i) * 17, 20_000) - 10_000::little-signed-16>>
  end

  @spec answer(binary, non_neg_integer) :: map
  def answer(pcm, passes) do
    samples = for <<sample::little-signed-16 <- pcm>>, do: sample
    chain = for pass <- Enum.take(0..passes, passes), sample <- samples, do: {pass, sample}
    count = length(chain)
    squares = chain |> Enum.map(fn {_pass, x} -> x * x end) |> Enum.sum()

    checksum =
      Enum.reduce(chain, 2_166_136_261, fn {pass, x}, sum ->
        bxor(sum, x + 32_768 + pass &&& 0xFFFF) * 16_777_619 &&& 0xFFFF_FFFF
      end)

    crossings = chain |> Enum.chunk_every(2, 1, :discard) |> Enum.count(fn [{_, a}, {_, b}] -> a < 0 != b < 0 end)

    %{
      "rms" => if(count == 0, do: 0.0, else: :math.sqrt(squares / count)),
      "zero_crossings" => crossings,
      "checksum" => checksum,
      "samples" => count,
      "transcript" => Enum.at(@words, rem(checksum, 24)),
      "audio_bytes" => byte_size(pcm)
    }
  end
end
