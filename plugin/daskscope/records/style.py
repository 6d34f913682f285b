"""The look of what a notebook shows: light and dark, as JupyterLab's theme says, else VS Code's, else the browser."""

from __future__ import annotations

NAME = "daskscope-shown"
"""The class that all of it stands under, so that nothing else in a notebook changes."""

_LIGHT = {
    "ink": ("--jp-content-font-color1", "--vscode-foreground", "#1b2430"),
    "dim": ("--jp-content-font-color2", "--vscode-descriptionForeground", "#566170"),
    "rule": ("--jp-border-color2", "--vscode-panel-border", "#d9dee5"),
    "soft": ("--jp-layout-color2", "--vscode-textBlockQuote-background", "#f5f6f8"),
    "link": ("--jp-content-link-color", "--vscode-textLink-foreground", "#0b5cad"),
}
_DARK = {"ink": "#e6eaf0", "dim": "#a3aebc", "rule": "#333d4a", "soft": "#1b222c", "link": "#7db7f0"}

# Actions have the colours of Dask's own dashboard, as on the pages.
_PAINTS = {"compute": "#4f7fbd", "transfer": "#d9473f", "disk": "#ef9233", "serialize": "#8d96a3", "other": "#7a68b8"}


def _variables(last: dict[str, str]) -> str:
    return "".join(
        f"--ds-{name}:var({jupyter},var({code},{last.get(name, plain)}));"
        for name, (jupyter, code, plain) in _LIGHT.items()
    )


STYLE = (
    f"<style>.{NAME}{{{_variables({})}color:var(--ds-ink);font-size:13px;line-height:1.45;max-width:100%;"
    "overflow-x:auto;font-variant-numeric:tabular-nums}"
    f"@media (prefers-color-scheme:dark){{.{NAME}{{{_variables(_DARK)}}}}}"
    f".{NAME} table{{border-collapse:collapse;border:0;margin:.2em 0}}"
    f".{NAME} tr{{background:none!important}}"
    f".{NAME} th,.{NAME} td{{text-align:left;vertical-align:top;padding:.2em .9em .2em 0;border:0;"
    "border-bottom:1px solid var(--ds-rule);color:var(--ds-ink);max-width:32em;overflow-wrap:anywhere}"
    f".{NAME} th{{color:var(--ds-dim);font-weight:600;white-space:nowrap}}"
    f".{NAME} .n{{text-align:right;white-space:nowrap}}.{NAME} .t{{white-space:nowrap}}"
    f".{NAME} .w{{max-width:64em}}.{NAME} h4{{margin:.8em 0 .1em;font-size:1em;color:var(--ds-ink)}}"
    f".{NAME} p{{margin:.3em 0;color:var(--ds-dim)}}.{NAME} a{{color:var(--ds-link)}}"
    f".{NAME} pre{{background:var(--ds-soft);color:var(--ds-ink);padding:.5em .7em;margin:.3em 0;white-space:pre-wrap}}"
    f".{NAME} svg{{display:block;fill:currentColor}}.{NAME} td svg{{margin:.25em 0}}"
    f".{NAME} summary{{cursor:pointer;color:var(--ds-link)}}"
    + "".join(f".{NAME} .{name}{{fill:{paint}}}" for name, paint in _PAINTS.items())
    + "</style>"
)
