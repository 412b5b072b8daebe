(function () {
  'use strict';
  var root = document.documentElement;

  // The theme: as the system has it, or as the reader wants it.
  var toggle = document.getElementById('theme-toggle');
  var themes = ['auto', 'light', 'dark'];
  var theme = 'auto';
  // A page that was opened from disk may have no storage.
  try { theme = localStorage.getItem('plimsoll-theme') || theme; } catch (error) { theme = 'auto'; }
  function showTheme() {
    if (themes.indexOf(theme) < 1) { theme = 'auto'; root.removeAttribute('data-theme'); } else { root.setAttribute('data-theme', theme); }
    toggle.textContent = 'Theme: ' + theme;
  }
  showTheme();
  toggle.hidden = false;
  toggle.addEventListener('click', function () {
    theme = themes[(themes.indexOf(theme) + 1) % themes.length];
    try { localStorage.setItem('plimsoll-theme', theme); } catch (error) { /* It lasts as long as the page. */ }
    showTheme();
  });

  // Which trial's timeline is open: one at a time, by the list or by its own line.
  document.querySelectorAll('.picker').forEach(function (picker) {
    var select = picker.querySelector('select');
    var timelines = picker.parentNode.querySelectorAll('details.timeline');
    select.addEventListener('change', function () {
      timelines.forEach(function (one) { one.open = one.id === select.value; });
    });
    timelines.forEach(function (one) {
      one.addEventListener('toggle', function () { if (one.open) { select.value = one.id; } });
    });
    picker.hidden = false;
  });

  // The raw JSON is in the page as data; it becomes text when somebody wants to read it.
  var raw = document.getElementById('raw');
  var view = document.getElementById('raw-view');
  raw.addEventListener('toggle', function () {
    if (raw.open && !view.textContent) {
      view.textContent = JSON.stringify(JSON.parse(document.getElementById('raw-json').textContent), null, 2);
      view.hidden = false;
    }
  });

  // On paper nothing can be opened. The raw JSON stays out: it would be most of the pages.
  var opened = [];
  window.addEventListener('beforeprint', function () {
    document.querySelectorAll('details:not([open])').forEach(function (one) {
      if (one !== raw) { one.open = true; opened.push(one); }
    });
  });
  window.addEventListener('afterprint', function () {
    opened.forEach(function (one) { one.open = false; });
    opened = [];
  });
})();
