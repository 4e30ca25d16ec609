/** A field that takes one owner, of which there may be thousands. */
import { useQuery } from '@tanstack/react-query';
import type { OwnerView } from '../../../admin/schemas/index.ts';
import { api } from './api.ts';
import { kindNames } from './owner-names.ts';
import { offered, SearchPicker, type PickerProps } from './search-picker.tsx';

type Kind = OwnerView['kind'];

/** Takes an owner of some kinds; `value` is its id, empty for none. */
export function OwnerPicker({
  kinds,
  ...props
}: PickerProps & {
  readonly kinds: readonly [Kind, ...Kind[]];
}) {
  const chosen = useQuery({
    queryKey: ['owners', 'one', props.value],
    queryFn: () => api.owner(props.value),
    enabled: props.value !== '',
    retry: false,
  });
  return (
    <SearchPicker
      {...props}
      name={chosen.data?.name}
      what={kinds.map((kind) => kindNames[kind].one.toLowerCase()).join(' or ')}
      queryKey={['owners', 'offered', kinds]}
      search={async (search) => {
        const pages = await Promise.all(kinds.map((kind) => api.owners({ kind, search, limit: offered })));
        return pages
          .flatMap(({ owners }) => owners)
          .slice(0, offered)
          .map(({ id, name, kind }) => ({
            id,
            name,
            note: kinds.length > 1 ? kindNames[kind].one : undefined,
          }));
      }}
    />
  );
}
