import { X509Certificate } from 'node:crypto';

const PEM = /-----BEGIN ((?:TRUSTED |X509 )?CERTIFICATE)-----[^-]+-----END \1-----/g;
const LEAST_RSA_BITS = 2048;
const CURVES: readonly (string | undefined)[] = ['prime256v1', 'secp384r1', 'secp521r1'];

/** The certificates of a file, each PEM. */
export function certificatesOf(text: string): readonly string[] {
  return text.match(PEM) ?? [];
}

/** When a certificate is valid; undefined when its dates cannot be read, which Node minds as little as a date that is none. */
export function spanOf(pem: string): { readonly fromMs: number; readonly toMs: number } | undefined {
  const { validFrom, validTo } = new X509Certificate(pem);
  const [fromMs, toMs] = [Date.parse(validFrom), Date.parse(validTo)];
  return Number.isNaN(fromMs) || Number.isNaN(toMs) ? undefined : { fromMs, toMs };
}

/** @throws {Error} when Envoys would refuse a file of certificates: they take all of it or nothing */
export function checkAll(text: string): void {
  const all = certificatesOf(text);
  for (const [index, pem] of all.entries()) {
    try {
      if (spanOf(pem) === undefined) throw new Error('its dates cannot be read');
    } catch (error) {
      throw new Error(`number ${index + 1} of ${all.length}: ${(error as Error).message}`);
    }
  }
}

/** @throws {Error} when Envoys could not show a certificate: their TLS (BoringSSL) has fewer kinds of keys than Node's */
export function checkShown(certificate: string): void {
  const { asymmetricKeyType: type, asymmetricKeyDetails: details } = new X509Certificate(certificate)
    .publicKey;
  const { modulusLength = 0, namedCurve } = details ?? {};
  if (type === 'ed25519') return;
  if (type === 'rsa' && modulusLength >= LEAST_RSA_BITS) return;
  if (type === 'ec' && CURVES.includes(namedCurve)) return;
  throw new Error(`it is of ${[type, namedCurve ?? modulusLength].join(' ')}`);
}
