defmodule Gateway.Vectors do
  @moduledoc "The golden vectors that all gateways share."

  @folder Path.expand("../../../vectors", __DIR__)

  @spec cases(String.t()) :: [map]
  def cases(file),
    do: @folder |> Path.join(file) |> File.read!() |> JSON.decode!() |> Map.fetch!("cases")
end
