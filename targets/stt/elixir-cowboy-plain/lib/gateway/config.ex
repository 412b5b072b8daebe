defmodule Gateway.Config do
  @moduledoc """
  The configuration: environment variables alone, each with the contract's default.
  """

  @fields ~w(port worker_threads inference inference_timeout_ms flush_interval_ms flush_phase_jitter_ms cpu_passes
            max_sessions max_buffer_frames overflow_policy max_inflight_jobs outbox_messages start_timeout_ms
            drain_timeout_ms auth_token_hash)a
  @enforce_keys @fields
  defstruct @fields

  @type t :: %__MODULE__{}

  # A year: more is a slip of the finger.
  @ms_max 365 * 24 * 3600 * 1000
  @count_max 0xFFFF_FFFF

  @doc "Reads variables through `lookup`, or gives one line that names the bad one."
  @spec load((String.t() -> String.t() | nil)) :: {:ok, t} | {:error, String.t()}
  def load(lookup \\ &System.get_env/1) do
    {:ok, load!(lookup)}
  catch
    {:bad_value, line} -> {:error, line}
  end

  defp load!(lookup) do
    number = fn name, default, range -> number!(name, lookup.(name), default, range) end
    worker_threads = number.("WORKER_THREADS", System.schedulers_online(), 1..1024)
    clients = number.("INFERENCE_HTTP_CLIENTS", 1, 1..4096)

    %__MODULE__{
      port: number.("PORT", 3000, 1..65_535),
      worker_threads: worker_threads,
      inference:
        (lookup.("INFERENCE_URL") || "http://127.0.0.1:9000")
        |> inference!()
        # The variable is for each worker, and workers are schedulers here.
        |> Map.put(:connections, clients * worker_threads),
      inference_timeout_ms: number.("INFERENCE_TIMEOUT_MS", 5000, 1..@ms_max),
      flush_interval_ms: number.("FLUSH_INTERVAL_MS", 1000, 1..@ms_max),
      flush_phase_jitter_ms: number.("FLUSH_PHASE_JITTER_MS", 1000, 0..@ms_max),
      cpu_passes: number.("CPU_PASSES", 4, 1..@count_max),
      max_sessions: number.("MAX_SESSIONS", 0, 0..@count_max),
      max_buffer_frames: number.("MAX_BUFFER_FRAMES", 500, 1..1_000_000),
      overflow_policy: overflow_policy!(lookup.("OVERFLOW_POLICY") || "drop_oldest"),
      max_inflight_jobs: number.("MAX_INFLIGHT_JOBS", 0, 0..@count_max),
      outbox_messages: number.("OUTBOX_MESSAGES", 4, 1..1_000_000),
      start_timeout_ms: number.("START_TIMEOUT_MS", 10_000, 1..@ms_max),
      drain_timeout_ms: number.("DRAIN_TIMEOUT_MS", 5000, 0..@ms_max),
      auth_token_hash: auth_token_hash(lookup.("AUTH_TOKEN") || "")
    }
  end

  # Hashes have one length, so comparing them takes the same time whatever the client sent.
  defp auth_token_hash(""), do: nil
  defp auth_token_hash(token), do: :crypto.hash(:sha256, "Bearer " <> token)

  defp number!(_name, nil, default, _range), do: default

  defp number!(name, text, _default, first..last//_) do
    # Digits only: Integer.parse/1 would take a sign.
    value = if text =~ ~r/\A[0-9]{1,18}\z/, do: String.to_integer(text)

    if value in first..last, do: value, else: bad!(name, text, "give a whole number from #{first} to #{last}")
  end

  defp overflow_policy!("drop_oldest"), do: :drop_oldest
  defp overflow_policy!("drop_newest"), do: :drop_newest
  defp overflow_policy!("close"), do: :close

  defp overflow_policy!(text), do: bad!("OVERFLOW_POLICY", text, "give drop_oldest, drop_newest or close")

  defp inference!(text) do
    case URI.new(text) do
      {:ok, %URI{scheme: "http", host: host, userinfo: nil, query: nil, fragment: nil} = uri}
      when is_binary(host) and host != "" and uri.port in 1..65_535 ->
        path = String.trim_trailing(uri.path || "", "/") <> "/infer"
        %{host: String.to_charlist(host), port: uri.port, path: path}

      _other ->
        bad!("INFERENCE_URL", text, "give a URL like http://HOST:PORT")
    end
  end

  # inspect/2 keeps the line one line, whatever the value is.
  defp bad!(name, text, remedy) do
    throw({:bad_value, "#{name}=#{inspect(text, printable_limit: 200)}: #{remedy}"})
  end
end
