defmodule Gateway.MixProject do
  use Mix.Project

  def project do
    [
      app: :gateway,
      version: "1.0.0",
      elixir: "~> 1.20",
      elixirc_paths: if(Mix.env() == :test, do: ["lib", "test/support"], else: ["lib"]),
      start_permanent: Mix.env() == :prod,
      releases: [gateway: [include_executables_for: [:unix]]]
    ]
  end

  # cowboy, ranch, cowlib and gun are packages of the root (see install.sh), so Hex has nothing to fetch.
  def application do
    [
      mod: {Gateway.Application, []},
      extra_applications: [:logger, :crypto, :cowboy, :gun]
    ]
  end
end
