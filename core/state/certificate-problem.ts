/** Codes of Node and OpenSSL for certificates that are not accepted. */
const badCertificate =
  /^(?:CERT_|DEPTH_ZERO_|SELF_SIGNED_|UNABLE_TO_|INVALID_CA|HOSTNAME_MISMATCH|ERR_TLS_CERT_)/;

/** Returns the code of an error for a certificate that was not accepted; undefined for any other error. */
export function certificateProblem(error: unknown): string | undefined {
  const code = error instanceof Error && 'code' in error ? String(error.code) : '';
  return badCertificate.test(code) ? code : undefined;
}
