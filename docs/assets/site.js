/* Tables that scroll sideways are reached by the keyboard in every browser, and have a name there, as code has by the theme. */
const reach = () => document.querySelectorAll(".md-typeset__scrollwrap").forEach(box => {
  if (box.scrollWidth > box.clientWidth) {
    box.tabIndex = 0
    box.setAttribute("role", "region")
    box.setAttribute("aria-label", "Table")
  } else for (const name of ["tabindex", "role", "aria-label"]) box.removeAttribute(name)
})
addEventListener("load", reach)
addEventListener("resize", reach)
