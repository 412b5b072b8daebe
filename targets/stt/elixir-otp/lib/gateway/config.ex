defmodule Gateway.Config do
  @moduledoc """
  The gateway's configuration: environment variables alone, each with the contract's default.
  """

  defmodule Error do
    @moduledoc "One line that names the variable whose value cannot be used."
    defexception [:message]
  end

  @enforce_keys [:port, :worker_threads, :inference, :session, :phase_jitter_ns]
  defstruct [
    :port,
    :worker_threads,
    :inference,
    :session,
    :phase_jitter_ns,
    sessions_max: 0,
    jobs_max: 0,
    drain_timeout_ms: 5000,
    read_pace_ms: 0,
    auth_token_hash: nil
  ]

  @type t :: %__MODULE__{}

  # A year: more is a slip of the finger, and sums of times stay far from the end of small integers.
  @milliseconds_max 365 * 24 * 3600 * 1000
  @count_max 0xFFFF_FFFF

  # A violation must be answered within 500 ms, also when it came right after a read.
  @read_pace_max_ms 250

  @doc "Reads variables through `lookup`, which answers as `System.get_env/1` does. Raises `Error`."
  @spec load!((String.t() -> String.t() | nil)) :: t
  def load!(lookup \\ &System.get_env/1) do
    number = fn name, default, range -> number!(name, lookup.(name), default, range) end
    ms = fn name, default, least -> number.(name, default, least..@milliseconds_max) end
    worker_threads = number.("WORKER_THREADS", System.schedulers_online(), 1..1024)

    %__MODULE__{
      port: number.("PORT", 3000, 1..65_535),
      worker_threads: worker_threads,
      inference:
        Map.merge(inference_url!(lookup.("INFERENCE_URL") || "http://127.0.0.1:9000"), %{
          # The variable is for each worker, and workers are schedulers here. A process for each connection: a single
          # one would be the queue that all sessions wait in.
          connections: number.("INFERENCE_HTTP_CLIENTS", 1, 1..4096) * worker_threads,
          cpu_passes: number.("CPU_PASSES", 4, 1..@count_max)
        }),
      phase_jitter_ns: ns(ms.("FLUSH_PHASE_JITTER_MS", 1000, 0)),
      sessions_max: number.("MAX_SESSIONS", 0, 0..@count_max),
      jobs_max: number.("MAX_INFLIGHT_JOBS", 0, 0..@count_max),
      drain_timeout_ms: ms.("DRAIN_TIMEOUT_MS", 5000, 0),
      read_pace_ms: number.("READ_PACE_MS", 0, 0..@read_pace_max_ms),
      auth_token_hash: token_hash(lookup.("AUTH_TOKEN") || ""),
      session: %{
        flush_interval_ns: ns(ms.("FLUSH_INTERVAL_MS", 1000, 1)),
        start_timeout_ns: ns(ms.("START_TIMEOUT_MS", 10_000, 1)),
        inference_timeout_ns: ns(ms.("INFERENCE_TIMEOUT_MS", 5000, 1)),
        buffer_frames_max: number.("MAX_BUFFER_FRAMES", 500, 1..1_000_000),
        overflow_policy: overflow_policy!(lookup.("OVERFLOW_POLICY") || "drop_oldest"),
        outbox_messages_max: number.("OUTBOX_MESSAGES", 4, 1..1_000_000),
        cpu_passes: number.("CPU_PASSES", 4, 1..@count_max)
      }
    }
  end

  @doc "What an `Authorization` header is compared with: hashes have one length, whatever the client sent."
  @spec token_hash(String.t()) :: binary | nil
  def token_hash(""), do: nil
  def token_hash(token), do: :crypto.hash(:sha256, "Bearer " <> token)

  defp ns(ms), do: ms * 1_000_000

  defp number!(_name, nil, default, _range), do: default

  defp number!(name, text, _default, first..last) do
    # Digits only: Integer.parse/1 would take a sign.
    with true <- text =~ ~r/\A[0-9]{1,18}\z/,
         value = String.to_integer(text),
         true <- value in first..last do
      value
    else
      _ -> bad!(name, text, "give a whole number from #{first} to #{last}")
    end
  end

  defp overflow_policy!("drop_oldest"), do: :drop_oldest
  defp overflow_policy!("drop_newest"), do: :drop_newest
  defp overflow_policy!("close"), do: :close
  defp overflow_policy!(text), do: bad!("OVERFLOW_POLICY", text, "give drop_oldest, drop_newest or close")

  defp inference_url!(text) do
    case URI.new(text) do
      {:ok, %URI{scheme: "http", host: host, userinfo: nil, query: nil, fragment: nil} = uri}
      when is_binary(host) and host != "" and uri.port in 1..65_535 ->
        path = String.trim_trailing(uri.path || "", "/") <> "/infer"
        %{host: String.to_charlist(host), port: uri.port, path: path}

      _ ->
        bad!("INFERENCE_URL", text, "give a URL like http://HOST:PORT")
    end
  end

  defp bad!(name, text, problem) do
    # inspect/1 keeps the line one line, whatever the value is.
    raise Error, message: "#{name}=#{inspect(text, printable_limit: 200)}: #{problem}"
  end
end
