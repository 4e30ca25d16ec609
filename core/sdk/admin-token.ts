/** Tells tokens of the admin API from API keys. */

/**
 * Beginning of every token of the admin API, which is no API key.
 *
 * @example
 * if (secret.startsWith(adminTokenPrefix)) throw new GatewayError('invalid_api_key', 'This is a token of the admin API.');
 */
export const adminTokenPrefix = 'sla_';
