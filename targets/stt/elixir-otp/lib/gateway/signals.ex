defmodule Gateway.Signals do
  @moduledoc """
  SIGTERM: drains the sessions, then ends the VM with code 0.

  Takes the place of OTP's own handler, which stops the VM at once. The stop of a drained gateway is `System.halt/1`: there
  is nothing left to be stopped in order, and `:init.stop/0` takes a second on an idle VM.
  """

  @behaviour :gen_event

  # What ending the sessions may take after the drain's time: the close handshake.
  @margin_ms 500

  @doc "Installs the handler."
  @spec handle_sigterm(Gateway.Config.t()) :: :ok
  def handle_sigterm(config) do
    :ok = :gen_event.swap_handler(:erl_signal_server, {:erl_signal_handler, []}, {__MODULE__, config.drain_timeout_ms})
  end

  @impl true
  def init({drain_timeout_ms, _what_the_other_left}), do: {:ok, drain_timeout_ms}

  @impl true
  def handle_event(:sigterm, drain_timeout_ms) do
    # Not here: other signals are to be seen meanwhile, and a second SIGTERM changes nothing.
    spawn(fn ->
      Gateway.Admission.drain(drain_timeout_ms, @margin_ms)
      System.halt(0)
    end)

    {:ok, drain_timeout_ms}
  end

  def handle_event(signal, drain_timeout_ms) do
    {:ok, _state} = :erl_signal_handler.handle_event(signal, [])
    {:ok, drain_timeout_ms}
  end

  @impl true
  def handle_call(_request, drain_timeout_ms), do: {:ok, :ok, drain_timeout_ms}
end
