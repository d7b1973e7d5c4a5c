"""The browser of the page's tests serves these too."""

from page.conftest import browser as browser
