defmodule Gateway.Boot do
  @moduledoc """
  What run.sh starts the VM with.
  """

  alias Gateway.Config

  @doc "Starts the gateway; a value that cannot be used is one line and exit code 2."
  @spec main :: :ok
  def main do
    _ = Config.load!()
    start()
  rescue
    error in Config.Error -> halt(error.message, 2)
  end

  defp start do
    case Application.ensure_all_started(:stt_gateway, :permanent) do
      {:ok, _applications} -> :ok
      {:error, {_application, reason}} -> halt("cannot start: #{inspect(reason, limit: 20)}", 1)
    end
  end

  @spec halt(String.t(), 1 | 2) :: no_return
  defp halt(line, code) do
    IO.puts(:stderr, line)
    System.halt(code)
  end
end
