/** Loads the packages of OpenTelemetry, which are optional peer dependencies. */
import { requirePackage } from 'sluice';

/** The packages of OpenTelemetry that the plugin needs, with the versions that belong together. */
const packages = [
  ['@opentelemetry/api', '1.10'],
  ['@opentelemetry/core', '3'],
  ['@opentelemetry/otlp-transformer', '0.301'],
  ['@opentelemetry/resources', '3'],
  ['@opentelemetry/sdk-logs', '3'],
  ['@opentelemetry/sdk-metrics', '3'],
  ['@opentelemetry/sdk-trace', '3'],
] as const;

/** Loads OpenTelemetry. Throws an Error that says what to install where a package is missing. */
export async function loadPackages() {
  for (const [name, version] of packages) requirePackage(name, version, 'export telemetry', import.meta.url);
  const [api, core, transformer, resources, logs, metrics, trace] = await Promise.all([
    import('@opentelemetry/api'),
    import('@opentelemetry/core'),
    import('@opentelemetry/otlp-transformer'),
    import('@opentelemetry/resources'),
    import('@opentelemetry/sdk-logs'),
    import('@opentelemetry/sdk-metrics'),
    import('@opentelemetry/sdk-trace'),
  ]);
  return { api, core, transformer, resources, logs, metrics, trace };
}

/** The loaded packages. */
export type Packages = Awaited<ReturnType<typeof loadPackages>>;
