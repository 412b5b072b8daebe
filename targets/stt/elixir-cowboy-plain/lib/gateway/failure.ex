defmodule Gateway.Failure do
  @moduledoc """
  Why frames got no `partial`: the names of the contract's section 7.
  """

  @enforce_keys [:kind, :message]
  defstruct [:kind, :message, status: nil]

  @kinds [:timeout, :connection_reset, :http_429, :http_5xx, :http_4xx, :parse_error, :overflow]

  @type kind ::
          :timeout
          | :connection_reset
          | :http_429
          | :http_5xx
          | :http_4xx
          | :parse_error
          | :overflow
  @type t :: %__MODULE__{kind: kind, message: String.t(), status: pos_integer | nil}

  @spec kinds :: [kind]
  def kinds, do: @kinds

  @spec stage(kind) :: String.t()
  def stage(:parse_error), do: "inference_response_parse"
  def stage(:overflow), do: "input_buffer"
  def stage(_kind), do: "inference_request"

  @doc "Whether the same audio might have got an answer at another time."
  @spec retryable?(kind) :: boolean
  def retryable?(kind), do: kind in [:timeout, :connection_reset, :http_429, :http_5xx]

  @doc "The failure that a status other than 200 is. One that is no error has no body that we can use."
  @spec from_status(pos_integer) :: t
  def from_status(status) do
    kind =
      case status do
        429 -> :http_429
        status when status in 400..499 -> :http_4xx
        status when status in 500..599 -> :http_5xx
        _other -> :parse_error
      end

    %__MODULE__{kind: kind, message: "the inference server answered #{status}", status: status}
  end

  @spec timeout(pos_integer) :: t
  def timeout(limit_ms), do: %__MODULE__{kind: :timeout, message: "no answer in #{limit_ms} ms"}

  @spec connection_reset(term) :: t
  def connection_reset(reason) do
    %__MODULE__{kind: :connection_reset, message: "no answer: " <> inspect(reason, limit: 8)}
  end

  @spec parse_error :: t
  def parse_error, do: %__MODULE__{kind: :parse_error, message: "the answer is not the agreed JSON", status: 200}

  @spec overflow :: t
  def overflow, do: %__MODULE__{kind: :overflow, message: "the input buffer was full"}
end
