/** A field that takes one API key, of which there may be thousands. */
import { useQuery } from '@tanstack/react-query';
import { api } from './api.ts';
import { offered, SearchPicker, type PickerProps } from './search-picker.tsx';

/** Takes a key; `value` is its id, empty for none. `name`: that of a key which may be deleted. */
export function KeyPicker({ name, ...props }: PickerProps & { readonly name?: string | undefined }) {
  const chosen = useQuery({
    queryKey: ['keys', 'one', props.value],
    queryFn: () => api.key(props.value),
    enabled: props.value !== '' && name === undefined,
    retry: false,
  });
  return (
    <SearchPicker
      {...props}
      name={name ?? chosen.data?.name}
      what="API key"
      queryKey={['keys', 'offered']}
      search={async (search) => {
        const { keys } = await api.keys({ search, limit: offered }, undefined);
        return keys.map(({ id, name: called, prefix, suffix }) => ({
          id,
          name: called,
          note: `${prefix}…${suffix}`,
        }));
      }}
    />
  );
}
