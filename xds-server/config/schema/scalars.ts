// Values that several sections have.

export const id = {
  type: 'string',
  pattern: '^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$',
  hint: 'use up to 63 letters, digits, dots, underscores and hyphens, starting with a letter or digit',
} as const;

export const region = { type: 'string', minLength: 1, maxLength: 100 } as const;

export const model = {
  type: 'string',
  pattern: '^[A-Za-z0-9][A-Za-z0-9._:/@+-]{0,199}$',
  hint: 'use up to 200 letters, digits and any of . _ : / @ + -, starting with a letter or digit',
} as const;

export const poolId = {
  type: 'string',
  pattern: '^[A-Za-z0-9][A-Za-z0-9._:/@+~-]{0,255}$',
  hint: 'use the model name, or for requests with needs the pool id that `wardrop validate` prints',
} as const;

export const share = (description: string) =>
  ({ type: 'number', minimum: 0, maximum: 1, description }) as const;

export const headerName = {
  type: 'string',
  pattern: '^[A-Za-z0-9_-]{5,64}$',
  hint: 'use 5 to 64 letters, digits, underscores and hyphens',
} as const;

/** A value of a header, as Envoy passes it on: without spaces around it. */
export const headerValue = {
  type: 'string',
  pattern: '^[\\x21-\\x7e]([\\x20-\\x7e]{0,254}[\\x21-\\x7e])?$',
  hint: 'use up to 256 printable characters',
} as const;

/** As it stands in a request. */
export const pagePath = {
  type: 'string',
  pattern: '^/[\\x21-\\x7e]{0,1023}$',
  hint: 'start the path with /, and write spaces and letters beyond ASCII as %20 and the like',
} as const;

/** `ip:port` to listen on, which the checks read. */
export const listenAddress = { type: 'string', hint: 'such as "0.0.0.0:8080"' } as const;

export const filePath = { type: 'string', minLength: 1 } as const;
