defmodule Gateway.Metrics do
  @moduledoc """
  Prometheus metrics in one array of counters that each scheduler has its own copy of.

  Sessions count for themselves and are entered here at a tick, so no frame touches anything shared; `stt_frames_total`
  lags by up to a flush interval.
  """

  alias Gateway.{Admission, Failure}

  @plain [:sessions_total, :sessions_rejected_total, :frames_total, :frames_dropped_total, :partials_total]
  @deferrals [:inflight, :jobs, :outbox]

  # Inclusive upper bounds, in frames or microseconds, and how many of those make the rendered unit.
  @histograms [
    {:buffer_frames, "stt_buffer_frames", 1, [1, 5, 10, 25, 40, 45, 50, 55, 60, 75, 100, 150, 200, 300, 500]},
    {:flush_lateness, "stt_flush_lateness_seconds", 1_000_000,
     [500, 1_000, 2_000, 5_000, 10_000, 20_000, 50_000, 100_000, 250_000, 500_000, 1_000_000]},
    {:inference, "stt_inference_seconds", 1_000_000,
     [10_000, 25_000, 50_000, 75_000, 100_000, 125_000, 150_000, 200_000, 300_000, 500_000, 750_000] ++
       [1_000_000, 2_500_000, 5_000_000]}
  ]

  # Each counter's place in the array: one for each number, then for each histogram its buckets, the last, and the sum.
  @keys @plain ++
          Enum.map(Failure.kinds(), &{:error, &1}) ++
          Enum.map(@deferrals, &{:deferred, &1}) ++
          Enum.flat_map(@histograms, fn {name, _title, _scale, bounds} ->
            Enum.map(bounds ++ [:infinity, :sum], &{name, &1})
          end)
  @places @keys |> Enum.with_index(1) |> Map.new()

  @doc "Begins anew, with zeros."
  @spec reset :: :ok
  def reset, do: :persistent_term.put(__MODULE__, :counters.new(length(@keys), [:write_concurrency]))

  @spec session_opened :: :ok
  def session_opened, do: add(:sessions_total, 1)

  @spec session_rejected :: :ok
  def session_rejected, do: add(:sessions_rejected_total, 1)

  @doc "Enters what a session counted."
  @spec record([Gateway.Session.count()]) :: :ok
  def record(tally), do: Enum.each(tally, &enter/1)

  defp enter({:frames, count}), do: add(:frames_total, count)
  defp enter({:dropped, count}), do: add(:frames_dropped_total, count)
  defp enter(:partial), do: add(:partials_total, 1)
  defp enter({:error, kind}), do: add({:error, kind}, 1)
  defp enter({:deferred, reason}), do: add({:deferred, reason}, 1)
  defp enter({:inference, ns}), do: observe(:inference, div(ns, 1000))

  defp enter({:flush, frames, lateness_ns}) do
    observe(:buffer_frames, frames)
    observe(:flush_lateness, div(lateness_ns, 1000))
  end

  for {name, _title, _scale, bounds} <- @histograms do
    first = Map.fetch!(@places, {name, hd(bounds)})

    defp observe(unquote(name), value) do
      counters = counters()
      :counters.add(counters, unquote(first) + bucket(unquote(bounds), value, 0), 1)
      :counters.add(counters, unquote(first + length(bounds) + 1), value)
    end
  end

  defp bucket([bound | bounds], value, index) when value > bound, do: bucket(bounds, value, index + 1)
  defp bucket(_bounds, _value, index), do: index

  for {key, place} <- @places do
    defp place(unquote(Macro.escape(key))), do: unquote(place)
  end

  defp add(key, count), do: :counters.add(counters(), place(key), count)

  defp value(key), do: :counters.get(counters(), place(key))

  defp counters, do: :persistent_term.get(__MODULE__)

  @doc "The Prometheus text format, version 0.0.4."
  @spec render :: iodata
  def render do
    [
      gauge("stt_sessions", Admission.sessions()),
      Enum.map(@plain, &["# TYPE stt_#{&1} counter\nstt_#{&1} #{value(&1)}\n"]),
      "# TYPE stt_errors_total counter\n",
      for kind <- Failure.kinds() do
        ~s(stt_errors_total{stage="#{Failure.stage(kind)}",kind="#{kind}"} #{value({:error, kind})}\n)
      end,
      gauge("stt_jobs_inflight", Admission.jobs()),
      "# TYPE stt_ticks_deferred_total counter\n",
      for reason <- @deferrals do
        ~s(stt_ticks_deferred_total{reason="#{reason}"} #{value({:deferred, reason})}\n)
      end,
      Enum.map(@histograms, &histogram/1)
    ]
  end

  defp gauge(name, value), do: "# TYPE #{name} gauge\n#{name} #{value}\n"

  defp histogram({name, title, scale, bounds}) do
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
