/** Refusals of calls whose cost has no known bound, for keys with a budget in dollars. */
import { GatewayError } from 'sluice';

/** Returns the refusal of a call that a budget in dollars cannot be kept with, because nobody knows what its model costs. */
export function noPriceError(model: string): GatewayError {
  const name = model.slice(0, 200);
  return new GatewayError(
    'model_not_allowed',
    `The model ${name} has no price here, and this API key has a budget in dollars. The operator must give it one in gateway.config.ts, in dollars per million tokens: prices: { ${JSON.stringify(name)}: { input: 1, output: 5 } }. "sluice prices import FILE" takes rows from a price list.`,
    { param: 'model' },
  );
}

/** Returns the refusal of a service tier that a budget in dollars cannot be kept with. */
export function noTierPriceError(model: string, serviceTier: string, param: string): GatewayError {
  const [name, tier] = [model.slice(0, 200), serviceTier.slice(0, 40)];
  return new GatewayError(
    'model_not_allowed',
    `The service tier "${tier}" has no price here for the model ${name}, and this API key has a budget in dollars. Remove "${param}", or ask the operator to give the tier a price in gateway.config.ts, in dollars per million tokens: prices: { ${JSON.stringify(name)}: { …, serviceTiers: { ${JSON.stringify(tier)}: { input: 2, output: 10 } } } }.`,
    { param: param.slice(0, 200) },
  );
}

/** Returns the refusal of a call that a budget in dollars cannot be kept with, because nobody knows what a service costs that it may use. */
export function noServicePriceError(model: string, service: string): GatewayError {
  const name = model.slice(0, 200);
  return new GatewayError(
    'model_not_allowed',
    `The service "${service}" has no price here for the model ${name}, and this API key has a budget in dollars. Remove its tool, or ask the operator to give it a price in gateway.config.ts, in dollars for each use: prices: { ${JSON.stringify(name)}: { …, services: { ${JSON.stringify(service)}: 0.01 } } }.`,
    { param: 'tools' },
  );
}
