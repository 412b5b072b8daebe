defmodule Gateway.Metrics do
  @moduledoc """
  Prometheus metrics, in one array of counters that all processes write.
  """

  alias Gateway.{Failure, Jobs, Sessions}

  @plain [:sessions_total, :sessions_rejected_total, :frames_total, :frames_dropped_total, :partials_total]
  @deferrals [:inflight, :jobs, :outbox]

  # Upper bounds in what is observed (frames, microseconds), and how many of that make the rendered unit.
  @histograms [
    buffer_frames: {"stt_buffer_frames", 1, [1, 5, 10, 25, 45, 50, 55, 75, 100, 150, 200, 300, 500]},
    flush_lateness:
      {"stt_flush_lateness_seconds", 1_000_000,
       [500, 1_000, 2_000, 5_000, 10_000, 20_000, 50_000, 100_000, 250_000, 500_000, 1_000_000]},
    inference:
      {"stt_inference_seconds", 1_000_000,
       [10_000, 25_000, 50_000, 75_000, 100_000, 150_000, 200_000, 300_000, 500_000, 1_000_000] ++
         [2_500_000, 5_000_000]}
  ]

  @keys @plain ++
          Enum.map(Failure.kinds(), &{:error, &1}) ++
          Enum.map(@deferrals, &{:deferred, &1}) ++
          Enum.flat_map(@histograms, fn {name, {_title, _scale, bounds}} ->
            Enum.map(bounds ++ [:infinity, :sum], &{name, &1})
          end)
  @places @keys |> Enum.with_index(1) |> Map.new()

  @doc "Begins with zeros."
  @spec reset :: :ok
  def reset do
    :persistent_term.put(__MODULE__, :counters.new(length(@keys), [:write_concurrency]))
  end

  @doc "Adds one to a counter."
  @spec add(atom | {:error, Failure.kind()} | {:deferred, atom}) :: :ok
  def add(key), do: add(key, 1)

  @doc "Enters a value into a histogram: frames, or microseconds."
  @spec observe(:buffer_frames | :flush_lateness | :inference, non_neg_integer) :: :ok
  def observe(name, value) do
    {_title, _scale, bounds} = @histograms[name]
    add({name, Enum.find(bounds, :infinity, &(value <= &1))}, 1)
    add({name, :sum}, value)
  end

  defp add(key, count) do
    :counters.add(:persistent_term.get(__MODULE__), Map.fetch!(@places, key), count)
  end

  defp value(key), do: :counters.get(:persistent_term.get(__MODULE__), Map.fetch!(@places, key))

  @doc "The Prometheus text format, version 0.0.4."
  @spec render :: iodata
  def render do
    [
      gauge("stt_sessions", Sessions.count()),
      Enum.map(@plain, &["# TYPE stt_#{&1} counter\n", "stt_#{&1} #{value(&1)}\n"]),
      gauge("stt_jobs_inflight", Jobs.count()),
      "# TYPE stt_errors_total counter\n",
      for kind <- Failure.kinds() do
        ~s(stt_errors_total{stage="#{Failure.stage(kind)}",kind="#{kind}"} #{value({:error, kind})}\n)
      end,
      "# TYPE stt_ticks_deferred_total counter\n",
      for reason <- @deferrals do
        ~s(stt_ticks_deferred_total{reason="#{reason}"} #{value({:deferred, reason})}\n)
      end,
      Enum.map(@histograms, &histogram/1)
    ]
  end

  defp gauge(name, value), do: "# TYPE #{name} gauge\n#{name} #{value}\n"

  defp histogram({name, {title, scale, bounds}}) do
    {buckets, below} =
      Enum.map_reduce(bounds, 0, fn bound, below ->
        count = below + value({name, bound})
        {~s(#{title}_bucket{le="#{scaled(bound, scale)}"} #{count}\n), count}
      end)

    count = below + value({name, :infinity})

    [
      "# TYPE #{title} histogram\n",
      buckets,
      ~s(#{title}_bucket{le="+Inf"} #{count}\n),
      "#{title}_sum #{scaled(value({name, :sum}), scale)}\n#{title}_count #{count}\n"
    ]
  end

  defp scaled(number, 1), do: number
  defp scaled(number, scale), do: number / scale
end
