defmodule Gateway.InferenceServer do
  @moduledoc "An inference server for tests: cowboy, which takes HTTP/2 with prior knowledge as well."

  @behaviour :cowboy_handler

  @doc "Starts it; `respond` is `:answer`, `:hang`, or a status with a body."
  @spec start(:answer | :hang | {pos_integer, binary}) :: :inet.port_number()
  def start(respond) do
    dispatch = :cowboy_router.compile([{:_, [{"/infer", __MODULE__, {self(), respond}}]}])
    {:ok, _listener} = :cowboy.start_clear(__MODULE__, [port: 0], %{env: %{dispatch: dispatch}})
    :ranch.get_port(__MODULE__)
  end

  @doc "Stops it, if it still runs."
  @spec stop :: :ok
  def stop do
    # Its supervisor is the sign of it: ranch raises for a listener that it does not know.
    if List.keymember?(Supervisor.which_children(:ranch_sup), {:ranch_listener_sup, __MODULE__}, 0) do
      :cowboy.stop_listener(__MODULE__)
    else
      :ok
    end
  end

  @impl true
  def init(request, {test, respond} = state) do
    {:ok, pcm, request} = :cowboy_req.read_body(request)
    send(test, {:inference_request, :cowboy_req.version(request), byte_size(pcm)})

    case respond do
      :answer ->
        passes = request |> then(&:cowboy_req.header("x-cpu-passes", &1)) |> String.to_integer()
        body = pcm |> Gateway.Reference.answer(passes) |> :jiffy.encode()
        {:ok, :cowboy_req.reply(200, %{}, body, request), state}

      :hang ->
        Process.sleep(:infinity)

      {status, body} ->
        {:ok, :cowboy_req.reply(status, %{}, body, request), state}
    end
  end
end
