/**
 * How Envoys and the control server speak to an engine, where that is not plain HTTP. It holds secrets, so it is no part
 * of the fleet, which is shown and recorded.
 */
export interface Upstream {
  readonly tls?: UpstreamTls;
  readonly auth?: UpstreamAuth;
}

export interface UpstreamTls {
  /** Name that is asked for, and that the certificate must be for. */
  readonly sni: string;
  /** PEM text of the authorities that are trusted; those of the system when absent. */
  readonly ca?: string;
  /** What is shown to engines that ask for a certificate; none when absent. */
  readonly client?: CertifiedKey;
}

/** PEM texts of a certificate chain and its private key. */
export interface CertifiedKey {
  readonly cert: string;
  readonly key: string;
}

/** A header that engines want to see; clients cannot send one of their own. */
export interface UpstreamAuth {
  /** Lower case. */
  readonly header: string;
  readonly value: string;
}
