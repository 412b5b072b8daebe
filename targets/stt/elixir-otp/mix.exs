defmodule Gateway.MixProject do
  use Mix.Project

  def project do
    [
      app: :stt_gateway,
      version: "1.0.0",
      elixir: "~> 1.14",
      elixirc_paths: if(Mix.env() == :test, do: ["lib", "test/support"], else: ["lib"]),
      start_permanent: true,
      deps: deps()
    ]
  end

  def application do
    # cowboy: HTTP and the WebSocket handshake. cowlib: WebSocket frames. ranch: acceptors and one supervised process per
    # connection. gun: HTTP/2 to the inference server. jiffy: JSON as a NIF (half of jsx's time for an answer, and it keeps
    # repeated fields, which strictness needs). crypto: the handshake's SHA-1, the token's comparison.
    [
      mod: {Gateway.Application, []},
      extra_applications: [:crypto, :ranch, :cowlib, :cowboy, :gun, :jiffy]
    ]
  end

  # Without Hex the same libraries come compiled from Debian packages, by way of ERL_LIBS (see install.sh and build.sh).
  # With STT_DEPS=hex in the environment of build.sh and test.sh they come from Hex, the same versions.
  defp deps do
    if System.get_env("STT_DEPS") == "hex" do
      [
        {:cowboy, "2.8.0"},
        {:cowlib, "2.9.1", override: true},
        {:ranch, "2.1.0", override: true},
        {:gun, "1.3.3"},
        {:jiffy, "1.1.1"}
      ]
    else
      []
    end
  end
end
