"""The examples gallery: each module is a program that teaches a construct of Metal and draws a picture."""
