/**
 * The TypeScript type of values that a JSON Schema accepts, for the keywords that `schema.ts` uses. Keys that are
 * required or have a default are present after validation, because validation fills in defaults.
 */
export type FromSchema<S> = S extends { readonly nullable: true; readonly type: 'number' }
  ? number | null
  : S extends { readonly enum: readonly (infer E)[] }
    ? E
    : S extends { readonly type: 'string' }
      ? string
      : S extends { readonly type: 'number' | 'integer' }
        ? number
        : S extends { readonly type: 'boolean' }
          ? boolean
          : S extends { readonly type: readonly ['string', 'array']; readonly items: infer I }
            ? string | readonly FromSchema<I>[]
            : S extends { readonly type: 'array'; readonly items: infer I }
              ? readonly FromSchema<I>[]
              : S extends { readonly type: 'object'; readonly properties: infer P }
                ? { readonly [K in Present<S, P>]: FromSchema<P[K]> } & {
                    readonly [K in Exclude<keyof P, Present<S, P>>]?: FromSchema<P[K]>;
                  }
                : S extends { readonly type: 'object'; readonly additionalProperties: infer V }
                  ? Readonly<Record<string, FromSchema<V>>>
                  : never;

type Present<S, P> =
  | (S extends { readonly required: readonly (infer R)[] } ? R & keyof P : never)
  | { [K in keyof P]: P[K] extends { readonly default: unknown } ? K : never }[keyof P];

/** A value of which any part may be missing: what is left of a document once its invalid parts are cut out. */
export type Partly<T> = T extends readonly (infer I)[]
  ? readonly (Partly<I> | undefined)[]
  : T extends object
    ? { readonly [K in keyof T]?: Partly<T[K]> | undefined }
    : T;
