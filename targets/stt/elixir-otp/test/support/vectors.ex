defmodule Gateway.Vectors do
  @moduledoc "The golden vectors that all gateways share."

  @folder Path.expand("../../../vectors", __DIR__)

  @spec cases(String.t()) :: [map]
  def cases(file) do
    @folder |> Path.join(file) |> File.read!() |> decode() |> Map.fetch!("cases")
  end

  @spec decode(iodata) :: term
  def decode(text), do: text |> IO.iodata_to_binary() |> :jiffy.decode([:return_maps, :use_nil])
end
