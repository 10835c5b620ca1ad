import { Autocomplete, NumberInput, Select, Switch, Textarea, TextInput } from "@mantine/core";

import { useText } from "../../../i18n";
import type { Field } from "./fields";
import { ZONES } from "./zones";

interface Props {
  field: Field;
  value: string | boolean;
  error?: string;
  isReadOnly: boolean;
  onChange: (value: string | boolean) => void;
}

/** Input for one property of a configuration. */
export function PropertyField({ field, value, error, isReadOnly, onChange }: Props) {
  const t = useText();
  const { label, about } = t.config.fields[field.key] ?? { label: field.key, about: "" };
  const common = {
    label,
    description: about,
    error,
    disabled: isReadOnly,
    "data-key": field.key,
  };
  switch (field.kind) {
    case "switch":
      return (
        <Switch
          {...common}
          checked={value === true}
          onChange={(event) => onChange(event.currentTarget.checked)}
        />
      );
    case "number":
      return (
        <NumberInput
          {...common}
          allowDecimal={false}
          value={value === "" ? "" : Number(value)}
          onChange={(next) => onChange(String(next))}
          hideControls
        />
      );
    case "choice": {
      const text = String(value);
      // A stored value that the pages do not know stays selectable.
      const choices =
        text === "" || field.choices.includes(text) ? field.choices : [...field.choices, text];
      return (
        <Select
          {...common}
          data={choices}
          value={text === "" ? null : text}
          placeholder={t.config.defaultValue}
          clearable
          clearButtonProps={{ "aria-label": t.config.clear, tabIndex: -1 }}
          onChange={(next) => onChange(next ?? "")}
        />
      );
    }
    case "area":
      return (
        <Textarea
          {...common}
          autosize
          minRows={1}
          value={String(value)}
          onChange={(event) => onChange(event.currentTarget.value)}
        />
      );
    default: {
      const placeholder = field.example
        ? t.config.example(field.example)
        : field.fallback && t.config.fallback(field.fallback);
      return field.key === "timeZone" ? (
        <Autocomplete
          {...common}
          data={ZONES}
          limit={30}
          placeholder={placeholder}
          value={String(value)}
          onChange={onChange}
        />
      ) : (
        <TextInput
          {...common}
          placeholder={placeholder}
          value={String(value)}
          onChange={(event) => onChange(event.currentTarget.value)}
        />
      );
    }
  }
}
