/** Recognizes requests of SDKs that sign them or send an invocation id. */
type Headers = Readonly<Record<string, string | readonly string[] | undefined>>;

/**
 * Returns true for requests of the SDKs whose errors are exceptions, whether they sign a request or show a bearer token. The header with the id of
 * the invocation comes with every request of these SDKs (botocore: handlers.py, add_retry_headers; @smithy: middleware-retry).
 */
export function isSigned({ authorization, 'amz-sdk-invocation-id': invocation }: Headers): boolean {
  return (
    invocation !== undefined ||
    (typeof authorization === 'string' && authorization.startsWith('AWS4-HMAC-SHA256 '))
  );
}
