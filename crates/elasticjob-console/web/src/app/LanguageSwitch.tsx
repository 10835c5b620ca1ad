import { Button } from "@mantine/core";

import { useLanguage } from "../i18n";
import { Icon } from "../parts/Icon";

/** Each language is named in itself: whoever needs it can read it. */
export function LanguageSwitch() {
  const { language, speak } = useLanguage();
  const [other, name] =
    language === "en" ? (["zh", "中文"] as const) : (["en", "English"] as const);
  return (
    <Button
      variant="subtle"
      color="gray"
      size="compact-sm"
      c="var(--mantine-color-text)"
      lang={other}
      onClick={() => speak(other)}
      leftSection={<Icon name="language" />}
    >
      {name}
    </Button>
  );
}
