/** Form fields of the price rule of a team or organisation. */
import { Field, TextField } from './fields.tsx';
import { Icon } from './icons.tsx';
import type { Problems } from './limits-draft.ts';
import {
  newModelPrice,
  otherPrices,
  priceNames,
  type ModelPriceDraft,
  type PriceRuleDraft,
} from './price-draft.ts';
import { pricesText } from './price-words.ts';
import { Box, RemoveButton } from './schema-box.tsx';

/** Maximum number of rows that the gateway takes. */
const mostModels = 200;

const titles = {
  input: 'Input',
  output: 'Output',
  cacheRead: 'Cache read',
  cacheWrite: 'Cache write',
} as const;

/** Returns true where a value of a row has a field, at which its problem is shown. */
const hasField = (path: string): boolean =>
  /^(?:model|factor|price\.(?:input|output|cacheRead|cacheWrite))$/.test(path);

type FieldProblems = Problems<{ readonly pricing: PriceRuleDraft }>;

/** The factor of all models, and rows of models with a factor or prices of their own. */
export function PriceFields({
  rule: { factor, models },
  isOfTeam,
  problems,
  onChange,
}: {
  readonly rule: PriceRuleDraft;
  /** True where the rule of an organisation may hold instead. */
  readonly isOfTeam: boolean;
  readonly problems: FieldProblems;
  readonly onChange: (rule: PriceRuleDraft) => void;
}) {
  const change = (index: number, changes: Partial<ModelPriceDraft>): void =>
    onChange({ factor, models: models.map((row, at) => (at === index ? { ...row, ...changes } : row)) });
  const isAtField = Object.keys(problems).some(
    (path) => path.startsWith('pricing.') && path !== 'pricing.models',
  );
  return (
    <Box
      label="Price rule"
      hint="What budgets are charged in place of the provider’s cost. A team without a rule has that of its organisation."
      problem={isAtField ? undefined : problems.pricing}
    >
      <TextField
        label="Factor"
        hint={[
          '1.2 charges 1.2 times the cost. Empty, without prices of models: no rule of its own.',
          ...(isOfTeam ? ['The rule of the organisation holds.'] : []),
          'Write 1 for the cost itself.',
        ].join(' ')}
        inputMode="decimal"
        problem={problems['pricing.factor']}
        value={factor}
        onChange={(typed) => onChange({ factor: typed, models })}
      />
      {models.map((row, index) => (
        <div key={row.id} className="price">
          <ModelPrice
            row={row}
            label={`Price ${index + 1}`}
            path={`pricing.models.${index}`}
            problems={problems}
            onChange={(changes) => change(index, changes)}
          />
          <span className="corner">
            {index > 0 && (
              <MoveUpButton
                what={`price ${index + 1}`}
                onMove={() =>
                  onChange({ factor, models: models.toSpliced(index, 1).toSpliced(index - 1, 0, row) })
                }
              />
            )}
            <RemoveButton
              what={`price ${index + 1}`}
              onRemove={() => onChange({ factor, models: models.toSpliced(index, 1) })}
            />
          </span>
        </div>
      ))}
      {models.length > 1 && <p className="hint">The first price whose model fits decides.</p>}
      {models.length < mostModels && (
        <div>
          <button
            type="button"
            className="button small"
            onClick={() => {
              const id = Math.max(-1, ...models.map((row) => row.id)) + 1;
              onChange({ factor, models: [...models, newModelPrice(id)] });
            }}
          >
            <Icon name="plus" />
            Add the price of a model
          </button>
        </div>
      )}
    </Box>
  );
}

function MoveUpButton({ what, onMove }: { readonly what: string; readonly onMove: () => void }) {
  return (
    <button
      type="button"
      className="button small plain"
      aria-label={`Move ${what} up`}
      title="Move up"
      onClick={onMove}
    >
      ↑
    </button>
  );
}

/** Fields of the price of one model, or of the models of a pattern. */
function ModelPrice({
  row: { model, by, factor, prices, stored },
  label,
  path,
  problems,
  onChange,
}: {
  readonly row: ModelPriceDraft;
  readonly label: string;
  readonly path: `${string}.${string}`;
  readonly problems: FieldProblems;
  readonly onChange: (changes: Partial<ModelPriceDraft>) => void;
}) {
  const others = otherPrices(stored);
  const problem = Object.entries(problems).find(
    ([one]) => one === path || (one.startsWith(`${path}.`) && !hasField(one.slice(path.length + 1))),
  )?.[1];
  return (
    <Box label={label} hint={undefined} problem={problem}>
      <div className="prices">
        <TextField
          label="Model"
          className="mono"
          placeholder="gpt-*"
          autoFocus={model === ''}
          problem={problems[`${path}.model`]}
          value={model}
          onChange={(typed) => onChange({ model: typed })}
        />
        <Field label="Charged by">
          {(props) => (
            <select
              {...props}
              value={by}
              onChange={({ target }) => onChange({ by: target.value as ModelPriceDraft['by'] })}
            >
              <option value="factor">a factor</option>
              <option value="price">$ per million tokens</option>
            </select>
          )}
        </Field>
        {by === 'factor' ? (
          <TextField
            label="Factor"
            inputMode="decimal"
            problem={problems[`${path}.factor`]}
            value={factor}
            onChange={(typed) => onChange({ factor: typed })}
          />
        ) : (
          priceNames.map((name) => (
            <TextField
              key={name}
              label={titles[name]}
              inputMode="decimal"
              problem={problems[`${path}.price.${name}`]}
              value={prices[name]}
              onChange={(typed) => onChange({ prices: { ...prices, [name]: typed } })}
            />
          ))
        )}
      </div>
      {by === 'price' && Object.keys(others).length > 0 && (
        <p className="hint">Kept as it is: {pricesText(others)}.</p>
      )}
    </Box>
  );
}
