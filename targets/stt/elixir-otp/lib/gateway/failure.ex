defmodule Gateway.Failure do
  @moduledoc """
  Why frames got no `partial`: the names of section 7 of the contract.
  """

  @enforce_keys [:kind, :message]
  defstruct [:kind, :message, status: nil]

  @type kind ::
          :timeout | :connection_reset | :http_429 | :http_5xx | :http_4xx | :parse_error | :overflow
  @type t :: %__MODULE__{kind: kind, message: String.t(), status: pos_integer | nil}

  @kinds [:timeout, :connection_reset, :http_429, :http_5xx, :http_4xx, :parse_error, :overflow]

  @doc "Every kind, in a fixed order."
  @spec kinds :: [kind]
  def kinds, do: @kinds

  @doc "The stage at which a kind of failure happens."
  @spec stage(kind) :: String.t()
  def stage(:parse_error), do: "inference_response_parse"
  def stage(:overflow), do: "input_buffer"
  def stage(_kind), do: "inference_request"

  @doc "Whether the same audio might have got an answer at another time."
  @spec retryable?(kind) :: boolean
  def retryable?(kind), do: kind in [:timeout, :connection_reset, :http_429, :http_5xx]

  @doc "The failure that a status other than 200 is."
  @spec from_status(pos_integer) :: t
  def from_status(429), do: with_status(:http_429, 429)
  def from_status(status) when status in 400..499, do: with_status(:http_4xx, status)
  def from_status(status) when status in 500..599, do: with_status(:http_5xx, status)
  # A redirection or an empty success has no body that is the agreed JSON.
  def from_status(status), do: with_status(:parse_error, status)

  @spec timeout(pos_integer) :: t
  def timeout(limit_ns) do
    %__MODULE__{kind: :timeout, message: "no answer in #{div(limit_ns, 1_000_000)} ms"}
  end

  @spec connection_reset(term) :: t
  def connection_reset(reason) do
    %__MODULE__{kind: :connection_reset, message: "no answer: " <> inspect(reason, limit: 8, printable_limit: 120)}
  end

  @spec parse_error :: t
  def parse_error do
    %__MODULE__{kind: :parse_error, message: "the inference server's answer is not the agreed JSON", status: 200}
  end

  @spec overflow :: t
  def overflow, do: %__MODULE__{kind: :overflow, message: "the input buffer was full"}

  defp with_status(kind, status) do
    %__MODULE__{kind: kind, message: "the inference server answered #{status}", status: status}
  end
end
