[
  inputs: ["{mix,.formatter}.exs", "{bench,lib,test}/**/*.{ex,exs}"],
  line_length: 120
]
