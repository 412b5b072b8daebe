defmodule Gateway.Versions do
  @moduledoc """
  The line that a gateway prints when it starts.
  """

  @libraries [:cowboy, :cowlib, :ranch, :gun, :jiffy]

  @doc "One JSON object that names the runtime and its libraries."
  @spec line :: String.t()
  def line do
    libraries = for name <- [:elixir | @libraries], do: {Atom.to_string(name), version(name)}
    erts = List.to_string(:erlang.system_info(:version))
    otp = List.to_string(:erlang.system_info(:otp_release))
    emulator = Atom.to_string(:erlang.system_info(:emu_flavor))

    IO.iodata_to_binary(
      :jiffy.encode(
        {[
           {"runtime", "Erlang/OTP #{otp}, erts #{erts}"},
           {"emulator", emulator},
           {"schedulers", :erlang.system_info(:schedulers_online)},
           {"libraries", {libraries}}
         ]}
      )
    )
  end

  defp version(application) do
    _ = Application.load(application)
    List.to_string(Application.spec(application, :vsn) || ~c"unknown")
  end
end
